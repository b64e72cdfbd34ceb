package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// ErrDecideAgain is returned by Keep when a row of the table wants more than to go on: only a boot takes such steps.
var ErrDecideAgain = errors.New("the membership has to be decided on again")

// keeper is what Keep remembers between its ticks; none of it matters to a decision about this replica's own member.
type keeper struct {
	m                  *Membership
	nextLook, nextMark time.Time
	// unresolved are the peers' names that the last look did not find: another look right away would not either.
	unresolved map[string]bool
	// leaderless: the member knew no leader at the former tick.
	leaderless bool
	// listed are the ids of the list as the last look found it.
	listed map[record.MemberID]bool
	// marked is the status of the former tick that was to be marked, certain the newest mark that follows from two of
	// them.
	marked  table.MemberStatus
	certain record.Mark
	beside  beside
}

// Keep looks after the membership while the replica runs: it observes as the boot does and ends when a row wants more
// than to go on; it keeps the peers' names in the hosts file; and beside the leader it takes the steps of the leader's
// rows. It returns nil when ctx is done.
func (m *Membership) Keep(ctx context.Context) error {
	m.keeping = true
	k := &keeper{m: m}
	k.beside = beside{m: m, revisions: revisions{window: m.history}}
	k.beside.forget()
	defer k.beside.alarms.forget()
	period := besidePeriod
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		if err := k.tick(ctx); err != nil {
			return err
		}
		if next := k.beside.period(time.Now()); next != period {
			period = next
			tick.Reset(period)
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
	s, err := k.ask(ctx)
	if err != nil {
		s = table.MemberStatus{} // the supervisor starts it again; the record is looked at all the same
		k.showEnded(now)
	}
	looked := false
	if lost := k.lostLeader(s); lost || !now.Before(k.nextLook) || k.unknownPeer(s) || k.newMember(s) {
		looked = true
		if err := k.look(ctx, s); err != nil {
			return err
		}
		k.nextLook = k.afterLook(now)
	}
	if s.MemberID != 0 && !now.Before(k.nextMark) {
		k.nextMark = now.Add(table.MarkPeriod)
		k.mark(ctx, s)
	}
	k.beside.revisions.note(now, s.Revision)
	if s.MemberID != 0 && s.Leader == s.MemberID {
		k.beside.tick(ctx, now, s, looked)
	} else {
		k.beside.forget()
	}
	return nil
}

// ask asks the child how its member is. While a learner is on its way it is asked for the streams, too: its being
// caught up makes a look due.
func (k *keeper) ask(ctx context.Context) (table.MemberStatus, error) {
	if k.beside.awaits() {
		return member.ReadStreams(ctx, k.m.StatusSocket())
	}
	return k.m.Status(ctx)
}

// lostLeader reports, once, that the member has just lost its leader: what follows from that is shown by the looks
// after it.
func (k *keeper) lostLeader(s table.MemberStatus) bool {
	before := k.leaderless
	k.leaderless = s.MemberID != 0 && s.Leader == 0
	return k.leaderless && !before
}

// afterLook is when the next look is due. One that found no quorum is followed by one that may say so: with the usual
// pause alone the loss was shown two pauses and the time-outs of both looks after it.
func (k *keeper) afterLook(now time.Time) time.Time {
	next := now.Add(keepPause)
	alone := k.m.silences.Alone
	if patient := alone.Add(table.QuorumPatience); !alone.IsZero() && patient.After(now) && patient.Before(next) {
		return patient
	}
	return next
}

// unknownPeer reports whether the list names a peer that the hosts file does not know: a replica that joins is in the
// record before it is in the list.
func (k *keeper) unknownPeer(s table.MemberStatus) bool {
	for name := range k.unnamed(s) {
		if !k.unresolved[name] {
			return true
		}
	}
	return false
}

// newMember reports whether the list has an id that the last look did not know. A replica that is made anew has a known
// name and may have another address, which is in the record before the id is in the list.
func (k *keeper) newMember(s table.MemberStatus) bool {
	for _, e := range s.Members {
		if !k.listed[e.ID] {
			return true
		}
	}
	return false
}

// unnamed are the hosts of the peer URLs that the hosts file does not know.
func (k *keeper) unnamed(s table.MemberStatus) map[string]bool {
	out := map[string]bool{}
	for _, e := range s.Members {
		for _, raw := range e.PeerURLs {
			u, err := url.Parse(raw)
			if err != nil {
				continue
			}
			if _, ok := hosts.Lookup(k.m.cfg.HostsFile, u.Hostname()); !ok {
				out[u.Hostname()] = true
			}
		}
	}
	return out
}

// look observes and decides as the boot does.
func (k *keeper) look(ctx context.Context, s table.MemberStatus) error {
	f := k.m.gather(ctx)
	if ctx.Err() != nil {
		return nil
	}
	k.m.noteDisk(ctx, f)
	k.unresolved, k.listed = k.unnamed(s), map[record.MemberID]bool{}
	for _, e := range s.Members {
		k.listed[e.ID] = true
	}
	_, plan := k.m.decide(f)
	k.m.show(f.Now, plan.Blocked)
	k.m.completeRestores(ctx, f)
	switch plan.Act {
	case table.ActKeep, table.ActWait, table.ActHalt:
		return nil
	case table.ActFormedAgain, table.ActOrderRestore, table.ActAccept, table.ActSettle:
		k.m.step(ctx, f, plan) // touches the record alone: no reason to end a member, let alone every replica's at once
		return nil
	default:
		return fmt.Errorf("%w: row %s wants to %s: %s", ErrDecideAgain, plan.Row, plan.Act, plan.Reason)
	}
}

// mark writes how far this member's disk has certainly come, and that its agent lives. etcd applies an entry while it
// is still being written to the log (server/etcdserver/raft.go: to apply first, then Save), and begins with the next
// only after that: so what the former observation saw applied is on the disk once this one sees more. A mark that is
// above the disk would make a valid directory look rolled back.
func (k *keeper) mark(ctx context.Context, s table.MemberStatus) {
	before := k.marked
	k.marked = s
	if k.m.agent.File.Epoch == 0 {
		return
	}
	now := time.Now()
	if before.MemberID == s.MemberID && before.Applied != 0 && s.Applied > before.Applied {
		k.certain = record.Mark{MemberID: s.MemberID, Term: before.Term, Applied: before.Applied, Time: now}
	}
	m := k.newestMark(s.MemberID)
	m.MemberID, m.Epoch, m.BootID, m.Beat = s.MemberID, k.m.agent.File.Epoch, k.m.cfg.Me.BootID, now
	if err := k.m.cfg.Record.WriteMark(ctx, m); err != nil {
		k.m.cfg.Log.Warn("write the mark", "err", err.Error())
	}
}

// newestMark is what is certain: by this agent, or by an earlier one of this member, whose mark must not be overwritten
// by less.
func (k *keeper) newestMark(id record.MemberID) record.Mark {
	var certain record.Mark
	if k.certain.MemberID == id {
		certain = k.certain
	}
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	if k.m.seen == nil {
		return certain
	}
	if there, ok := k.m.seen.Marks[id]; ok && there.Epoch == k.m.agent.File.Epoch && there.Applied >= certain.Applied {
		return there
	}
	return certain
}

// showEnded shows that the member has ended because the disk is full.
func (k *keeper) showEnded(now time.Time) {
	if k.m.cfg.Child.Running() {
		return
	}
	dir := k.m.cfg.Cluster.Etcd.DataDir
	room, err := k.m.room(dir)
	if err != nil {
		return
	}
	if w := table.EndedOnAFullDisk(member.ReadEnd(k.m.StatusSocket(), k.m.cfg.dir().Etcd()), room, dir); w != nil {
		k.m.show(now, w)
	}
}
