package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/snapshot"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

const (
	// besidePeriod is the tick of noticing everywhere: a new peer, a learner, a member without a leader.
	besidePeriod = 250 * time.Millisecond
	// learnerPeriod is the tick beside the leader while a learner is on its way. Each asks the child on this machine,
	// and nobody else: the look follows once the learner has caught up.
	learnerPeriod = 50 * time.Millisecond
	// slowPeriod is the tick while a learner takes longer than bootWindow, or stays one: each look lists the record. It
	// is below the age that a promotion allows the look before it (pollStale).
	slowPeriod = 2 * time.Second
)

// beside is what the agent beside the leader remembers between two looks. It is of one leadership: what was seen in an
// earlier one may have changed meanwhile a hundred times. The revisions alone are the history's, whoever leads.
type beside struct {
	m           *Membership
	previous    table.Ring
	unreachable map[record.MemberID]time.Time
	moved       map[record.MemberID]movement
	learners    map[record.MemberID]bool
	arrived     bool                       // some learner had caught up at the last tick
	versions    map[record.MemberID]string // of learners, while they are heard of
	version     string                     // the cluster's, when a learner was last asked for its own
	changed     time.Time                  // when learners last changed, or the first of them caught up
	trouble     string                     // the alarms and the voters out of reach
	troubled    time.Time                  // when trouble last changed
	quiet       bool                       // the last look found nothing to do and nothing to wait for
	// look again in the next tick: the last look did something, or the leadership is new
	again     bool
	since     time.Time // when this leadership was first seen
	failing   string    // what failed last, as long as nothing has gone well since
	failed    string    // and how
	alarms    alarmWork
	revisions revisions
}

// movement is how far a member's log reached, and since when.
type movement struct {
	match uint64
	at    time.Time
}

// forget is for a member that does not lead, or not any more.
func (b *beside) forget() {
	b.previous, b.failing, b.failed, b.changed, b.quiet, b.again, b.since = table.Ring{}, "", "", time.Time{}, false,
		true,
		time.Time{}
	b.trouble, b.troubled, b.arrived = "", time.Time{}, false
	b.unreachable, b.moved, b.learners = map[record.MemberID]time.Time{}, map[record.MemberID]movement{}, nil
	b.versions = map[record.MemberID]string{}
	b.alarms.forget()
	b.m.leaderWaits.Only(nil, time.Now())
	b.m.sawBeside(time.Time{}, table.Ring{}, table.Ring{}, table.Plan{})
}

// tick takes at most one step of the leader's rows. looked: the record was just read for this replica itself.
func (b *beside) tick(ctx context.Context, now time.Time, s table.MemberStatus, looked bool) {
	if due := b.due(now, s); !due && !looked {
		return
	}
	s, err := member.ReadStreams(ctx, b.m.StatusSocket())
	if err != nil || s.Leader != s.MemberID {
		return
	}
	b.listGone(ctx, now, s) // before the members and the record, which have to be fresh when a step is taken
	c, err := member.Dial(b.m.dnsName(), b.m.local, b.m.cfg.TLS())
	if err != nil {
		b.fails(ctx, "look beside the leader", err)
		return
	}
	defer c.Close()
	b.finishErrand(ctx, now)
	looking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ring, err := b.ring(looking, c, now, s)
	if err != nil {
		b.fails(ctx, "look beside the leader", err)
		return
	}
	plan := table.DecideBesideLeader(now, b.previous, ring)
	b.m.sawBeside(now, b.previous, ring, plan)
	b.previous = ring
	b.m.leaderWaits.Only(plan.Blocked, now)
	b.quiet = plan.Act == table.ActKeep
	if plan.Act == table.ActKeep || plan.Act == table.ActWait || plan.Act == table.ActHalt {
		b.failing, b.failed = "", ""
		// A leader that is new has not heard of everybody yet.
		b.again = plan.Act == table.ActWait && now.Sub(b.since) < besidePatience
		return
	}
	if b.alarms.errand.runs() && (plan.Act == table.ActCompact || plan.Act == table.ActDefragment) {
		b.again = false // one at a time: its end makes the next look due
		return
	}
	b.again = b.take(ctx, c, plan)
}

// ring reads the list, the record and the leader's view of each member.
func (b *beside) ring(ctx context.Context, c *clientv3.Client, now time.Time, s table.MemberStatus) (table.Ring,
	error) {
	r := table.Ring{At: now, Me: b.m.cfg.Me, Cluster: b.m.cfg.Cluster.Name, Leader: s.MemberID,
		Compute: b.m.lists.compute,
		Alarms:  s.Alarms,
		Policy:  table.Policy{Replicas: b.m.cfg.Cluster.Replicas}}
	_, list, err := member.List(ctx, c)
	if err != nil {
		return r, err
	}
	r.Record, r.RecordErr = b.m.cfg.Record.View(ctx)
	if r.RecordErr == nil {
		b.m.lists.noteInstances(r.Record)
		r.Ahead = b.m.agent.Err == nil && table.HistoryOf(table.Facts{Record: r.Record, Agent: b.m.agent.File}).Ahead()
		b.m.keepHosts(r.Record) // a voter that is out of reach may be back at another address
		r.Compute = b.m.lists.compute
		if r.Policy.Snapshot = snapshot.NewestOfFormed(r.Record, now); r.Policy.Snapshot != nil {
			r.SnapshotAt = r.Policy.Snapshot.Time
		}
	}
	r.LastIndex = s.Progress[s.MemberID].Match
	for _, e := range list {
		p, ok := s.Progress[e.ID]
		if !ok {
			continue // added since the status was read: the next tick sees it
		}
		r.SnapshotInFlight = r.SnapshotInFlight || p.State == string(table.ProgressSnapshot)
		r.Members = append(r.Members, b.member(e, p, now))
	}
	b.askLearners(ctx, &r)
	b.lookAtAlarms(ctx, now, s, &r)
	return r, nil
}

// member is one member of the ring, with since when it is out of reach and since when its log stands still.
func (b *beside) member(e table.Member, p table.PeerProgress, now time.Time) table.RingMember {
	switch {
	case p.RecentActive && p.StreamsActive:
		delete(b.unreachable, e.ID)
	default:
		b.loses(e.ID, now)
	}
	if before, ok := b.moved[e.ID]; !ok || before.match != p.Match {
		b.moved[e.ID] = movement{p.Match, now}
	}
	m := ringMember(e, p)
	m.UnreachableSince, m.MovedAt = b.unreachable[e.ID], b.moved[e.ID].at
	return m
}

// ringMember is what the leader's raft says of a member at this moment.
func ringMember(e table.Member, p table.PeerProgress) table.RingMember {
	return table.RingMember{Member: e, Match: p.Match, State: table.ProgressState(p.State),
		RecentActive:    p.RecentActive,
		PendingSnapshot: p.PendingSnapshot, StreamsActive: p.StreamsActive}
}

// take takes one step of the leader's rows, and reports whether it went well. The list and the record were read right
// before.
func (b *beside) take(ctx context.Context, c *clientv3.Client, p table.Plan) bool {
	what := fmt.Sprintf("row %s: %s %s", p.Row, p.Act, p.MemberID)
	if b.failing != what {
		b.m.cfg.Log.Info("step", "row", p.Row.String(), "act", string(p.Act), "member", p.MemberID.String(), "reason",
			p.Reason)
	}
	changing, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := b.change(changing, c, p)
	b.m.count(p.Act, err)
	if err != nil {
		b.fails(ctx, what, err)
		return false
	}
	b.failing, b.failed = "", ""
	return true
}

func (b *beside) change(ctx context.Context, c *clientv3.Client, p table.Plan) error {
	switch p.Act {
	case table.ActPromote:
		return b.m.at(acts.StepPromote, func() error { _, err := c.MemberPromote(ctx, uint64(p.MemberID)); return err })
	case table.ActRemoveMember:
		return b.m.at(acts.StepRemove, func() error { _, err := c.MemberRemove(ctx, uint64(p.MemberID)); return err })
	case table.ActMoveLeader:
		return b.m.at(acts.StepMoveLeader, func() error {
			return member.HandOverTo(ctx, b.m.StatusSocket(),
				p.MemberID)
		})
	case table.ActCompleteOrder:
		return b.m.at(acts.StepCompleteOrder, func() error { return b.completeOrder(ctx, p) })
	case table.ActDisarm:
		return b.disarm(ctx, c, p.Alarm)
	case table.ActCompact:
		return b.compact()
	case table.ActDefragment:
		return b.defragment(p.MemberID)
	default:
		return fmt.Errorf("act %q is not one beside the leader", p.Act)
	}
}

// fails logs what failed, once as long as it stays the same.
func (b *beside) fails(ctx context.Context, what string, err error) {
	if errors.Is(ctx.Err(), context.Canceled) || b.failing == what && b.failed == err.Error() {
		return
	}
	b.failing, b.failed = what, err.Error()
	b.m.cfg.Log.Warn("step failed", "step", what, "err", err.Error())
}

// besidePatience is how long a wait beside the leader must last before it is shown: each join passes through some of
// them.
const besidePatience = 3 * time.Second

// completeOrder writes that an order has been carried out. Another leader may have written it first, which is as good.
func (b *beside) completeOrder(ctx context.Context, p table.Plan) error {
	_, _, err := b.m.cfg.Record.CompleteOrder(ctx, p.OrderNumber, record.Done{By: b.m.cfg.Me.MemberName(),
		Time: time.Now(),
		What: p.Reason})
	return err
}
