package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/snapshot"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// leaderLoop is what the agent on the leader's node does for the other members: it observes them, decides, and takes at
// most one step a tick. What it remembers is of one leadership: what was seen in an earlier one may have changed
// meanwhile a hundred times.
type leaderLoop struct {
	cfg      Config
	own      *ownMember
	agent    *acts.AgentStore
	lists    *computeLists
	reported *lastReported

	pace     leaderPace
	previous leader.Ring
	moved    map[record.MemberID]movement
	needed   map[record.MemberID]need
	versions learnerVersions
	alarms   alarmWork
	failing  failingStep
}

// movement is how far a member's log reached, and since when.
type movement struct {
	match uint64
	at    time.Time
}

// need is whether the others are a quorum without a member. since is when they stopped to be one; zero: they are one.
// freed is leader.RingMember.FreedAt.
type need struct{ since, freed time.Time }

func (m *Membership) newLeaderLoop() *leaderLoop {
	l := &leaderLoop{cfg: m.cfg, own: m.own, agent: m.disk.agent, lists: m.observer.lists, reported: m.reported,
		versions: learnerVersions{asks: m.observer.asks},
		alarms: alarmWork{cfg: m.cfg, own: m.own, asks: m.observer.asks,
			revisions: revisions{window: m.history}},
		failing: failingStep{log: m.cfg.Log}}
	l.forget()
	return l
}

// forget is for a member that does not lead, or not any more.
func (l *leaderLoop) forget() {
	l.pace, l.previous, l.moved = newLeaderPace(), leader.Ring{}, map[record.MemberID]movement{}
	l.needed = map[record.MemberID]need{}
	l.versions.of = map[record.MemberID]string{}
	l.failing.wentWell()
	l.alarms.forget()
	l.reported.leaderWaits.Only(nil, time.Now())
	l.reported.noteLeader(time.Time{}, leader.Ring{}, leader.Ring{}, table.Plan{})
}

// calm: there is nothing to do before the member has news.
func (l *leaderLoop) calm() bool { return l.pace.calm() && !l.alarms.task.runs() }

// tick takes at most one step. observed: the record was just read for this replica itself.
func (l *leaderLoop) tick(ctx context.Context, now time.Time, s table.MemberStatus, observed bool) {
	if due := l.pace.due(now, s, l.alarms.task.ended()); !due && !observed {
		return
	}
	s, err := member.ReadStreams(ctx, l.cfg.statusSocket())
	if err != nil || s.Leader != s.MemberID {
		return
	}
	l.listGone(ctx, now, s) // before the members and the record, which have to be fresh when a step is taken
	c, err := l.own.dial()
	if err != nil {
		l.failing.fails(ctx, "observe as the leader", err)
		return
	}
	defer c.Close()
	if step, err := l.alarms.finishTask(now); err != nil {
		l.failing.fails(ctx, step, err)
	}
	observing, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ring, err := l.observe(observing, c, now, s)
	if err != nil {
		l.failing.fails(ctx, "observe as the leader", err)
		return
	}
	l.act(ctx, c, now, ring)
}

// listGone asks the Compute API for what exists, where that is due. A list that takes long is waited for once: the
// other members need this loop.
func (l *leaderLoop) listGone(ctx context.Context, now time.Time, s table.MemberStatus) {
	switch {
	case l.lists.making != nil:
		l.lists.collect()
	case l.pace.listDue(now, l.lists.compute.Second.Time, s):
		l.lists.list(ctx, l.previous.Record)
	}
}

// act decides on what was observed, and takes the step.
func (l *leaderLoop) act(ctx context.Context, c *clientv3.Client, now time.Time, ring leader.Ring) {
	plan := leader.Decide(now, l.previous, ring)
	l.reported.noteLeader(now, l.previous, ring, plan)
	l.previous, l.pace.observed = ring, ring.At
	l.reported.leaderWaits.Only(plan.Blocked, now)
	l.pace.quiet = plan.Act == table.ActKeep
	l.pace.awaitsSnapshot(now, plan.Blocked != nil && plan.Blocked.Name == table.WaitSnapshotFirst)
	switch {
	case plan.Act == table.ActKeep, plan.Act == table.ActWait, plan.Act == table.ActHalt:
		l.failing.wentWell()
		// A leader that is new has not heard of everybody yet.
		l.pace.again = plan.Act == table.ActWait && now.Sub(l.pace.since) < leaderPatience
	case l.alarms.task.runs() && (plan.Act == table.ActCompact || plan.Act == table.ActDefragment):
		l.pace.again = false // one at a time: its end makes the next observation due
	default:
		l.pace.again = l.take(ctx, c, plan)
	}
}

// observe reads the list, the record and the leader's view of each member.
func (l *leaderLoop) observe(ctx context.Context, c *clientv3.Client, now time.Time, s table.MemberStatus) (leader.Ring,
	error) {
	r := leader.Ring{At: now, Me: l.cfg.Me, Cluster: l.cfg.Cluster.Name, Leader: s.MemberID, Alarms: s.Alarms,
		Compute: l.lists.compute, Policy: table.Policy{Replicas: l.cfg.Cluster.Replicas},
		Balanced: l.cfg.Cluster.LoadBalancer().Type != ""}
	_, list, err := member.List(ctx, c)
	if err != nil {
		return r, err
	}
	r.Record, r.RecordErr = l.cfg.Record.View(ctx)
	if r.RecordErr == nil {
		l.lists.noteInstances(r.Record)
		r.Ahead = l.agent.Err == nil && table.HistoryOf(table.Facts{Record: r.Record, Agent: l.agent.File}).Ahead()
		keepHosts(l.cfg, r.Record) // a voter that is out of reach may be back at another address
		r.Compute = l.lists.compute
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
		r.SnapshotInFlight = r.SnapshotInFlight || p.State == string(leader.ProgressSnapshot)
		r.Members = append(r.Members, l.member(e, p, now))
	}
	l.noteNeeded(&r)
	l.versions.observe(ctx, &r)
	l.alarms.observe(ctx, now, s.Revision, &r)
	return r, nil
}

// noteNeeded finds since when each member could go.
func (l *leaderLoop) noteNeeded(r *leader.Ring) {
	for i := range r.Members {
		m := &r.Members[i]
		n, seen := l.needed[m.ID]
		switch needed := r.Needs(*m); {
		case !seen:
			n.freed = r.At
		case needed && n.since.IsZero():
			n.since = r.At
		case !needed && !n.since.IsZero():
			if r.At.Sub(n.since) >= leader.StaysDrained {
				n.freed = r.At
			}
			n.since = time.Time{}
		}
		l.needed[m.ID] = n
		m.FreedAt = n.freed
	}
}

// member is one member of the ring, with since when it is out of reach and since when its log stands still.
func (l *leaderLoop) member(e table.Member, p table.PeerProgress, now time.Time) leader.RingMember {
	if before, ok := l.moved[e.ID]; !ok || before.match != p.Match {
		l.moved[e.ID] = movement{p.Match, now}
	}
	m := ringMember(e, p)
	m.UnreachableSince = l.pace.heardOf(e.ID, p.RecentActive && p.StreamsActive, now)
	m.MovedAt = l.moved[e.ID].at
	return m
}

// ringMember is what the leader's raft says of a member at this moment.
func ringMember(e table.Member, p table.PeerProgress) leader.RingMember {
	return leader.RingMember{Member: e, Match: p.Match, State: leader.ProgressState(p.State),
		RecentActive:    p.RecentActive,
		PendingSnapshot: p.PendingSnapshot, StreamsActive: p.StreamsActive}
}

// take takes one step, and reports whether it went well. The list and the record were read right before.
func (l *leaderLoop) take(ctx context.Context, c *clientv3.Client, p table.Plan) bool {
	what := fmt.Sprintf("row %s: %s %s", p.Row.Name(), p.Act, p.MemberID)
	if l.failing.step != what {
		l.cfg.Log.Info("step", "row", p.Row.Name(), "act", string(p.Act), "member", p.MemberID.String(), "reason",
			p.Reason)
	}
	changing, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := l.change(changing, c, p)
	l.reported.noteStep(p, err)
	if err != nil {
		l.failing.fails(ctx, what, err)
		return false
	}
	l.failing.wentWell()
	return true
}

func (l *leaderLoop) change(ctx context.Context, c *clientv3.Client, p table.Plan) error {
	id := uint64(p.MemberID)
	switch p.Act {
	case table.ActPromote:
		return l.cfg.at(acts.StepPromote, func() error { _, err := c.MemberPromote(ctx, id); return err })
	case table.ActRemoveMember:
		return l.cfg.at(acts.StepRemove, func() error { _, err := c.MemberRemove(ctx, id); return err })
	case table.ActMoveLeader:
		return l.cfg.at(acts.StepMoveLeader, func() error {
			return member.HandOverTo(ctx, l.cfg.statusSocket(), p.MemberID)
		})
	case table.ActCompleteOrder:
		return l.cfg.at(acts.StepCompleteOrder, func() error { return l.completeOrder(ctx, p) })
	case table.ActDisarm:
		return l.alarms.disarm(ctx, c, p.Alarm)
	case table.ActCompact:
		return l.alarms.compact()
	case table.ActDefragment:
		n := slices.IndexFunc(l.previous.Members, func(m leader.RingMember) bool { return m.ID == p.MemberID })
		if n >= 0 { // not removed since
			l.alarms.defragment(l.previous.Members[n])
		}
		return nil
	default:
		return fmt.Errorf("act %q is not one of the leader loop", p.Act)
	}
}

// completeOrder writes that an order has been carried out. Another leader may have written it first, which is as good.
func (l *leaderLoop) completeOrder(ctx context.Context, p table.Plan) error {
	_, _, err := l.cfg.Record.CompleteOrder(ctx, p.OrderNumber, record.Done{By: l.cfg.Me.MemberName(),
		Time: time.Now(), What: p.Reason})
	return err
}

// failingStep is what failed last, as long as nothing has gone well since. It is logged once.
type failingStep struct {
	log       *slog.Logger
	step, how string
}

func (f *failingStep) wentWell() { f.step, f.how = "", "" }

func (f *failingStep) fails(ctx context.Context, step string, err error) {
	if errors.Is(ctx.Err(), context.Canceled) || f.step == step && f.how == err.Error() {
		return
	}
	f.step, f.how = step, err.Error()
	f.log.Warn("step failed", "step", step, "err", err.Error())
}
