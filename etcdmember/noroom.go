package etcdmember

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

const (
	// runRoom is what has to be free on the data disk for a member to go on: two files of its log, of which it makes
	// the next one ahead.
	runRoom = table.JoinSpare
	// leastRoom is less than one file of the log. A member that does not stay up has no other reason to be named
	// where there is less.
	leastRoom = runRoom / 2
)

// outOfSpace reports whether a step failed because the disk is full. Of a step that another process takes only the
// text is left.
func outOfSpace(err error) bool {
	return err != nil && (errors.Is(err, syscall.ENOSPC) || saysOutOfSpace(err.Error()))
}

func saysOutOfSpace(text string) bool { return strings.Contains(text, syscall.ENOSPC.Error()) }

// startsMember: the plan starts etcd, or takes the incarnation that comes first.
func startsMember(p table.Plan) bool {
	switch p.Act {
	case table.ActStart, table.ActStartJoined, table.ActSeed, table.ActForm, table.ActTakeIncarnation:
		return true
	}
	return false
}

// noRoom is the wait for room on a full data disk, which stands before any other: what else fails there fails because
// of it. It is told from what happened, and never from the room alone: a member runs on a disk that is nearly full
// for as long as its log and its database fit. The plan's act stays, and is tried again. early: the member has just
// ended, again.
func (m *Membership) noRoom(f table.Facts, p table.Plan, early bool) (table.Plan, bool) {
	what, least := "", int64(runRoom)
	end := f.Directory.End.Text
	switch {
	case m.failure != nil && outOfSpace(m.failure.err):
		what = fmt.Sprintf("the step to %s failed: %v", p.Act, m.failure.err)
	case f.Directory.Running || !startsMember(p):
	case saysOutOfSpace(end):
		what = "etcd ended for want of space"
	case early:
		what, least = fmt.Sprintf("etcd was started %d times, one soon after the other, and has ended each time",
			m.starts.runs), leastRoom
	}
	if what == "" {
		return p, false
	}
	dir := m.cfg.Cluster.Etcd.DataDir
	room, err := m.room(dir)
	if err != nil || room.Free >= least {
		return p, false
	}
	return p.Waiting(table.NoRoom,
		fmt.Sprintf("the data disk is full: it has %d MiB free, and etcd needs %d MiB to go on; "+
			"%s.", room.Free>>20, int64(runRoom)>>20, what),
		fmt.Sprintf("Free at least %d MiB in %s, or make the disk larger; then it goes on by itself. "+
			"The oldest directories in its `archive/` can be moved to another disk; delete one only when this "+
			"replica is a voter again. Leave `etcd/` alone.", (runRoom-room.Free+1<<20-1)>>20, dir)), true
}

// showFull shows at once that the member of a running replica has ended because the disk is full. The next
// observation may be seconds away, and after a few such ends the agent stops everything, which takes a minute in
// which nothing is observed.
func (m *Membership) showFull(now time.Time) {
	if m.cfg.Child.Running() {
		return
	}
	f := table.Facts{Now: now}
	f.Directory.End = readEnd(m.StatusSocket(), m.etcdDir())
	if p, full := m.noRoom(f, table.Plan{Act: table.ActStart, Row: table.RowRunning}, false); full {
		m.show(f, p)
	}
}
