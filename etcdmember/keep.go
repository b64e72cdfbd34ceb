package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/record"
)

const (
	// besidePeriod is the tick beside the leader while there is a learner, and of noticing a new peer everywhere.
	besidePeriod = 250 * time.Millisecond
	// markPeriod is the time between two marks of how far this member has certainly come; membership.md section 1.
	markPeriod = 30 * time.Second
)

// ErrDecideAgain is returned by Keep when a row of the table wants more than to go on: only a boot takes such steps.
var ErrDecideAgain = errors.New("the membership has to be decided on again")

// keeper is what Keep remembers between its ticks; none of it matters to a decision about this replica's own member.
type keeper struct {
	*Membership
	nextLook, nextMark time.Time
	previous           Ring
	unreachable        map[record.MemberID]time.Time
	moved              map[record.MemberID]movement
}

// movement is how far a member's log reached, and since when.
type movement struct {
	match uint64
	at    time.Time
}

// Keep looks after the membership while the replica runs: it observes as the boot does and ends when a row wants more than to
// go on; it keeps the peers' names in the hosts file; and beside the leader it takes the steps of the leader's rows.
func (m *Membership) Keep(ctx context.Context) error {
	m.keeping = true
	k := &keeper{Membership: m, unreachable: map[record.MemberID]time.Time{}, moved: map[record.MemberID]movement{}}
	tick := time.NewTicker(besidePeriod)
	defer tick.Stop()
	for {
		if err := k.tick(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (k *keeper) tick(ctx context.Context) error {
	now := time.Now()
	s, err := k.Status(ctx)
	if err != nil {
		s = MemberStatus{} // the supervisor starts it again; the record is looked at all the same
	}
	if !now.Before(k.nextLook) || k.unknownPeer(s) {
		k.nextLook = now.Add(keepPause)
		if err := k.look(ctx); err != nil {
			return err
		}
	}
	if s.MemberID != 0 && !now.Before(k.nextMark) {
		k.nextMark = now.Add(markPeriod)
		k.mark(ctx, s)
	}
	if s.MemberID != 0 && s.Leader == s.MemberID {
		k.besideLeader(ctx, now, s)
	} else {
		k.previous = Ring{}
	}
	return nil
}

// unknownPeer reports whether the list names a peer that the hosts file does not know: a replica that joins is in the record
// before it is in the list.
func (k *keeper) unknownPeer(s MemberStatus) bool {
	for _, e := range s.Members {
		for _, raw := range e.PeerURLs {
			u, err := url.Parse(raw)
			if err != nil {
				continue
			}
			if _, ok := lookupHosts(k.cfg.HostsFile, u.Hostname()); !ok {
				return true
			}
		}
	}
	return false
}

// look observes and decides as the boot does.
func (k *keeper) look(ctx context.Context) error {
	f := k.observe(ctx)
	if ctx.Err() != nil {
		return nil
	}
	plan := Decide(f.Now, Classify(f))
	k.show(f, plan)
	switch plan.Act {
	case ActKeep, ActWait, ActHalt:
		return nil
	default:
		return fmt.Errorf("%w: row %s wants to %s: %s", ErrDecideAgain, plan.Row, plan.Act, plan.Reason)
	}
}

func (k *keeper) mark(ctx context.Context, s MemberStatus) {
	err := k.cfg.Record.WriteMark(ctx, record.Mark{
		MemberID: s.MemberID, Epoch: k.agent.Epoch, Term: s.Term, Applied: s.Applied, Time: time.Now()})
	if err != nil {
		k.cfg.Log.Warn("write the mark", "err", err.Error())
	}
}

// besideLeader takes at most one step of the leader's rows. While nothing is pending it looks at the pace of Keep.
func (k *keeper) besideLeader(ctx context.Context, now time.Time, s MemberStatus) {
	if !k.worthALook(now, s) {
		return
	}
	s, err := readStreams(ctx, k.StatusSocket())
	if err != nil || s.Leader != s.MemberID {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := dial(k.dnsName(), loopback, k.cfg.TLS())
	if err != nil {
		k.cfg.Log.Warn("look beside the leader", "err", err.Error())
		return
	}
	defer c.Close()
	ring, err := k.ring(ctx, c, now, s)
	if err != nil {
		k.cfg.Log.Warn("look beside the leader", "err", err.Error())
		return
	}
	plan := DecideBesideLeader(now, k.previous, ring)
	k.previous = ring
	if plan.Act == ActKeep || plan.Act == ActWait || plan.Act == ActHalt {
		k.showBeside(now, plan)
		return
	}
	k.cfg.Log.Info("step", "row", plan.Row.String(), "act", string(plan.Act), "member", plan.MemberID.String(), "reason", plan.Reason)
	if err := k.actBeside(ctx, c, plan); err != nil {
		k.cfg.Log.Warn("step failed", "row", plan.Row.String(), "act", string(plan.Act), "err", err.Error())
	}
}

// worthALook reports whether somebody joins, or has gone quiet, or it is time for a look anyway.
func (k *keeper) worthALook(now time.Time, s MemberStatus) bool {
	if k.nextLook.Sub(now) > keepPause-besidePeriod {
		return true // the record was just read
	}
	for _, p := range s.Progress {
		if p.Learner {
			return true
		}
	}
	return false
}

// ring reads the list, the record and the leader's view of each member.
func (k *keeper) ring(ctx context.Context, c *clientv3.Client, now time.Time, s MemberStatus) (Ring, error) {
	r := Ring{At: now, Me: k.cfg.Me, Cluster: k.cfg.Cluster.Name, Leader: s.MemberID, Compute: k.compute, Policy: Policy{Replicas: k.cfg.Cluster.Replicas, Restore: k.cfg.Cluster.Restore}}
	_, list, err := members(ctx, c)
	if err != nil {
		return r, err
	}
	r.Record, r.RecordErr = k.cfg.Record.View(ctx)
	r.LastIndex = s.Progress[s.MemberID].Match
	for _, e := range list {
		p, ok := s.Progress[e.ID]
		if !ok {
			continue // added since the status was read: the next tick sees it
		}
		reachable := p.RecentActive && p.StreamsActive
		switch {
		case reachable:
			delete(k.unreachable, e.ID)
		case k.unreachable[e.ID].IsZero():
			k.unreachable[e.ID] = now
		}
		if k.moved[e.ID].match != p.Match || k.moved[e.ID].at.IsZero() {
			k.moved[e.ID] = movement{p.Match, now}
		}
		r.SnapshotInFlight = r.SnapshotInFlight || p.State == string(ProgressSnapshot)
		r.Members = append(r.Members, RingMember{
			Member: e, Match: p.Match, State: ProgressState(p.State), RecentActive: p.RecentActive,
			PendingSnapshot: p.PendingSnapshot, StreamsActive: p.StreamsActive,
			UnreachableSince: k.unreachable[e.ID], MovedAt: k.moved[e.ID].at,
		})
	}
	return r, nil
}

// actBeside takes one step of the leader's rows. The list and the record were read right before.
func (k *keeper) actBeside(ctx context.Context, c *clientv3.Client, p Plan) error {
	switch p.Act {
	case ActPromote:
		_, err := c.MemberPromote(ctx, uint64(p.MemberID))
		return err
	case ActRemoveMember:
		_, err := c.MemberRemove(ctx, uint64(p.MemberID))
		return err
	case ActMoveLeader:
		return HandOver(ctx, k.StatusSocket())
	default:
		return errNotYet
	}
}

// showBeside shows a wait of the leader's rows where this replica itself waits for nothing.
func (k *keeper) showBeside(now time.Time, plan Plan) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shownBeside = k.follow(k.shownBeside, plan.Blocked, now)
}
