package acts

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// removeFormer removes an entry of this place's own past from the member list.
func (a *Actor) removeFormer(ctx context.Context, f table.Facts, p table.Plan) error {
	return a.at(StepRemoveFormer, func() error {
		via, ok := table.QuorumAnswer(f)
		if !ok {
			return errNoQuorum
		}
		return a.Cluster.RemoveMember(ctx, via, p.MemberID)
	})
}

// addLearner adds this replica to the members, as a learner, and writes its id to the disk: join steps 4 and 5. A
// time-out is ambiguous: the next observation finds the entry, and removes it, because nothing on this disk says that
// it was added.
func (a *Actor) addLearner(ctx context.Context, f table.Facts) error {
	var id record.MemberID
	err := a.at(StepAddLearner, func() (err error) {
		via, ok := table.QuorumAnswer(f)
		if !ok {
			return errNoQuorum
		}
		id, err = a.Cluster.AddLearner(ctx, via)
		return err
	})
	if err != nil {
		return fmt.Errorf("add learner: %w", err)
	}
	return a.setAgent(StepMarkAdded, func(d *table.AgentFile) { d.Phase, d.MemberID = table.PhaseAdded, id })
}

// startJoined starts the member that was added for this disk: join step 8. The child reads the list again right before
// it starts, because another may join in between.
func (a *Actor) startJoined(ctx context.Context, f table.Facts) error {
	via, ok := table.QuorumAnswer(f)
	if !ok {
		return errNoQuorum
	}
	how := Start{MemberID: a.Agent.File.MemberID, Members: via.Members}
	if err := a.setAgent(StepMarkStarted, func(d *table.AgentFile) { d.Phase = table.PhaseStarted }); err != nil {
		return err
	}
	return a.at(StepStartJoined, func() error { return a.Member.Start(ctx, how) })
}

// AfterOthers is now, or a moment after every incarnation of another place that had one of this VM's addresses: the
// younger of two has the address in the hosts files, and this VM has it, whatever the clocks of the two said.
func AfterOthers(v record.View, me replica.Identity, now time.Time) time.Time {
	for place, all := range v.Replicas {
		for _, i := range all {
			shared := slices.ContainsFunc(i.Addresses, func(a netip.Addr) bool {
				return slices.Contains(me.Addresses,
					a)
			})
			if place != me.Place && shared && !now.After(i.Time) {
				now = i.Time.Add(time.Millisecond)
			}
		}
	}
	return now
}
