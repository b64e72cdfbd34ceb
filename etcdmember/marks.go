package etcdmember

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// marks writes how far this member's disk has certainly come, and that its agent lives. etcd applies an entry while it
// is still being written to the log (server/etcdserver/raft.go: to apply first, then Save), and begins with the next
// only after that: so what the former poll saw applied is on the disk once this one sees more. A mark that is above the
// disk would let a valid directory count as rolled back.
type marks struct {
	log      *slog.Logger
	record   Record
	bootID   string
	agent    *acts.AgentStore
	reported *lastReported
	waits    *waits.Source

	next time.Time
	// failed counts the writes that failed in a row.
	failed int
	// former is the status at the former mark, certain the newest mark that follows from two of them.
	former  table.MemberStatus
	certain record.Mark
}

// keep writes one where it is time for it and a member answers.
func (k *marks) keep(ctx context.Context, now time.Time, s table.MemberStatus) {
	if s.MemberID != 0 && !now.Before(k.next) {
		k.next = now.Add(table.MarkPeriod)
		k.write(ctx, s)
	}
}

func (k *marks) write(ctx context.Context, s table.MemberStatus) {
	before := k.former
	k.former = s
	if k.agent.File.Epoch == 0 {
		return
	}
	now := time.Now()
	if before.MemberID == s.MemberID && before.Applied != 0 && s.Applied > before.Applied {
		k.certain = record.Mark{MemberID: s.MemberID, Term: before.Term, Applied: before.Applied, Time: now}
	}
	m := k.newest(s.MemberID)
	m.MemberID, m.Epoch, m.BootID, m.Beat = s.MemberID, k.agent.File.Epoch, k.bootID, now
	k.tell(k.record.WriteMark(ctx, m))
}

// tell says that marks cannot be written, from the second failure in a row on: nothing else shows it, and a disk that
// is put back to an older copy then goes unnoticed.
func (k *marks) tell(err error) {
	if err == nil {
		k.failed = 0
		k.waits.Release(table.WaitMarkNotWritten)
		return
	}
	k.log.Warn("write the mark", "err", err.Error())
	if k.failed++; k.failed < 2 {
		return
	}
	k.hold(table.WaitMarkNotWritten, "the mark of this member cannot be written: "+err.Error()+".",
		"It is tried again every 30 s. The service account needs storage.objects.create and storage.objects.delete "+
			"below marks/; what was just granted takes effect within 7 minutes.")
}

func (k *marks) hold(name, reason, next string) {
	k.waits.Hold(replica.Wait{Name: name, Reason: reason, Next: next})
}

// newest is what is certain: by this agent, or by an earlier one of this member, whose mark must not be overwritten by
// less.
func (k *marks) newest(id record.MemberID) record.Mark {
	var certain record.Mark
	if k.certain.MemberID == id {
		certain = k.certain
	}
	view := k.reported.record()
	if view == nil {
		return certain
	}
	if there, ok := view.Marks[id]; ok && there.Epoch == k.agent.File.Epoch && there.Applied >= certain.Applied {
		return there
	}
	return certain
}
