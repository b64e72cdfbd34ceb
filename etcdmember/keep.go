package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/record"
)

// ErrDecideAgain is returned by Keep when a row of the table wants more than to go on: only a boot takes such steps.
var ErrDecideAgain = errors.New("the membership has to be decided on again")

// keeper polls the running member, and says when the next round of the reconciler is due. What it remembers between its
// ticks matters to no decision about this replica's own member.
type keeper struct {
	cfg   Config
	own   *ownMember
	round *reconciler
	marks marks
	// leaves is Membership's. leftAt is when the leader could last follow an order to leave.
	leaves *atomic.Uint64
	leftAt time.Time
	// leader is the leader loop, which does nothing where this member does not lead.
	leader *leaderLoop
	// space does something only where this member is a learner.
	space *ownSpace

	nextRound time.Time
	// unresolved are the peers' names that the last round did not find: another round right away would not either.
	unresolved map[string]bool
	// began is when it did. whole: at the last tick the member knew a leader, and nobody was on the way. leads: it was
	// the leader.
	began        time.Time
	whole, leads bool
	// news is member.News of the last answer.
	news string
	// leaderless: the member knew no leader at the former tick.
	leaderless bool
	// listed are the ids of the list as the last round found it.
	listed map[record.MemberID]bool
}

func (m *Membership) newKeeper() *keeper {
	return &keeper{cfg: m.cfg, own: m.own, round: m.reconciler, leader: m.newLeaderLoop(), leaves: &m.leaves,
		space: &ownSpace{cfg: m.cfg},
		marks: marks{log: m.cfg.Log, record: m.cfg.Record, bootID: m.cfg.Me.BootID, agent: m.disk.agent,
			reported: m.reported, waits: m.markWaits}}
}

// Keep looks after the membership while the replica runs: it observes as the boot does and ends when a row wants more
// than to go on; it keeps the peers' names in the hosts file; and on the leader's node it takes the steps of the leader
// loop. It returns nil when ctx is done.
func (m *Membership) Keep(ctx context.Context) error {
	m.observer.keeping = true
	k := m.newKeeper()
	k.began = time.Now()
	defer k.leader.alarms.forget()
	defer k.space.forget()
	defer k.own.told.Store(nil)
	defer m.observer.lists.drop()
	defer m.observer.asks.lines.dropAll()
	for {
		began := time.Now()
		if err := k.tick(ctx); err != nil {
			return err
		}
		// What the question has waited for news counts.
		if now := time.Now(); backoff.Sleep(ctx, k.period(now)-now.Sub(began)) != nil {
			return nil
		}
	}
}

// period is the time from one tick to the next. Each question wakes two idle processes, so a member that follows is
// asked rarely: who comes or goes is the leader's business first.
func (k *keeper) period(now time.Time) time.Duration {
	if k.calm(now) && !k.leads {
		return calmPeriod
	}
	return k.leader.pace.period(now)
}

// calm: the cluster is whole, and this replica has nothing to do for it now.
func (k *keeper) calm(now time.Time) bool {
	return k.whole && now.Sub(k.began) >= bootWindow && (!k.leads || k.leader.calm())
}

// noteCluster notes whether the member leads, and whether the cluster is whole: there is a leader, and all members of
// the list are voters that have started.
func (k *keeper) noteCluster(s table.MemberStatus) {
	onTheWay := func(e table.Member) bool { return e.Learner || !e.Started() }
	k.whole = s.Leader != 0 && !slices.ContainsFunc(s.Members, onTheWay)
	k.leads = s.MemberID != 0 && s.Leader == s.MemberID
}

func (k *keeper) tick(ctx context.Context) error {
	s, err := k.ask(ctx)
	if ctx.Err() != nil {
		return nil
	}
	now := time.Now()
	if err != nil {
		s = table.MemberStatus{} // the supervisor starts it again; the record is observed all the same
		k.showEnded(now)
		k.own.told.Store(nil)
	} else {
		k.own.told.Store(&told{s, now})
	}
	k.news = member.News(s)
	k.noteCluster(s)
	observed := false
	if lost := k.lostLeader(s); lost || !now.Before(k.nextRound) || k.unknownPeer(s) || k.newMember(s) {
		observed = true
		if err := k.reconcile(ctx, s); err != nil {
			return err
		}
		k.nextRound = k.afterRound(now)
	}
	k.marks.keep(ctx, now, s)
	k.leader.alarms.revisions.note(now, s.Revision)
	k.space.tick(now, s)
	if k.leads {
		k.leader.tick(ctx, now, s, observed)
	} else {
		k.leader.forget()
	}
	return nil
}

// ask asks the child how its member is. The child of a calm leader answers when there is news, or once the next tick is
// due. While a learner is on its way it is asked for the streams, too: its being caught up makes an observation due.
func (k *keeper) ask(ctx context.Context) (table.MemberStatus, error) {
	if k.leader.pace.awaits() {
		return member.ReadStreams(ctx, k.cfg.statusSocket())
	}
	if now := time.Now(); k.leads && k.calm(now) {
		return member.AwaitNews(ctx, k.cfg.statusSocket(), k.news, max(0, min(calmPeriod, k.nextRound.Sub(now))))
	}
	return k.own.Status(ctx)
}

// lostLeader reports, once, that the member has just lost its leader: what follows from that is shown by the rounds
// after it.
func (k *keeper) lostLeader(s table.MemberStatus) bool {
	before := k.leaderless
	k.leaderless = s.MemberID != 0 && s.Leader == 0
	return k.leaderless && !before
}

// afterRound is when the next round is due. One that found no quorum is followed by one that may say so: with the usual
// pause alone the loss was shown two pauses and the time-outs of both rounds after it.
func (k *keeper) afterRound(now time.Time) time.Time {
	next := now.Add(keepPause)
	alone := k.round.observer.memory.silences.Alone
	if patient := alone.Add(table.QuorumPatience); !alone.IsZero() && patient.After(now) && patient.Before(next) {
		return patient
	}
	return next
}

// unknownPeer reports whether the list names a peer that the hosts file does not know: a replica that joins is in the
// record before it is in the list.
func (k *keeper) unknownPeer(s table.MemberStatus) bool {
	for name := range unnamed(hosts.Read(k.cfg.HostsFile), s.Members) {
		if !k.unresolved[name] {
			return true
		}
	}
	return false
}

// newMember reports whether the list has an id that the last round did not know. A replica that is made anew has a
// known name and may have another address, which is in the record before the id is in the list.
func (k *keeper) newMember(s table.MemberStatus) bool {
	for _, e := range s.Members {
		if !k.listed[e.ID] {
			return true
		}
	}
	return false
}

// reconcile observes and decides as the boot does.
func (k *keeper) reconcile(ctx context.Context, s table.MemberStatus) error {
	f := k.round.observe(ctx)
	if ctx.Err() != nil {
		return nil
	}
	k.round.noteDisk(ctx, f)
	k.noteLeaving(f, s)
	k.unresolved, k.listed = unnamed(k.round.named, s.Members), map[record.MemberID]bool{}
	for _, e := range s.Members {
		k.listed[e.ID] = true
	}
	_, plan := k.round.decide(f)
	k.round.show(f.Now, plan.Blocked)
	k.round.completeRestores(ctx, f)
	switch plan.Act {
	case table.ActKeep, table.ActWait, table.ActHalt:
		return nil
	case table.ActFormedAgain, table.ActOrderRestore, table.ActAccept, table.ActSettle:
		// It touches the record alone: no reason to end a member, let alone every replica's at once.
		k.round.step(ctx, f, plan)
		return nil
	default:
		return fmt.Errorf("%w: row %s wants to %s: %s", ErrDecideAgain, plan.Row.Name(), plan.Act, plan.Reason)
	}
}

// showEnded shows that the member has ended because the disk is full.
func (k *keeper) showEnded(now time.Time) {
	if k.own.Running() {
		return
	}
	end := member.ReadEnd(k.cfg.statusSocket(), k.cfg.dir().Etcd())
	if w := table.EndedOnAFullDisk(end, k.round.disk.room(), k.cfg.Cluster.Etcd.DataDir); w != nil {
		k.round.show(now, w)
	}
}
