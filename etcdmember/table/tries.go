package table

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// Tries is what this agent has tried since it began, and how that came out. It can only hold a step back, or say why
// one is taken again: an agent that has just begun has tried nothing.
type Tries struct {
	Starts Starts
	Failed Failure
	Unfit  Unfit
	// Checked is what reading the database whole has found, where that was no damage; empty: it was not read.
	Checked string
}

// Starts counts the starts of the member that came one soon after the other.
type Starts struct {
	Last time.Time
	Runs int
}

// Again is the count after one more start; joins: of a member that joins.
func (s Starts) Again(joins bool, now time.Time) Starts {
	if now.Sub(s.Last) > stayedUp+s.distance(joins) {
		s.Runs = 0
	}
	return Starts{Last: now, Runs: s.Runs + 1}
}

// distance is how long after the last start the next one may be.
func (s Starts) distance(joins bool) time.Duration {
	if s.Runs < 2 {
		return 0
	}
	return min(firstDistance<<min(s.Runs-2, 10), mostDistanceOf(joins))
}

func mostDistanceOf(joins bool) time.Duration {
	if joins {
		return mostJoinDistance
	}
	return mostDistance
}

// Failure is the step that failed last, as long as it is the next one again; zero: none has.
type Failure struct {
	Row  Row
	Act  Act
	Text string
	// Times is how often it has failed, one time after the other.
	Times int
}

// Of: the failure is of this very step.
func (f Failure) Of(p Plan) bool { return f.Times > 0 && f.Row == p.Row && f.Act == p.Wants() }

// Again is the failure after the plan's step has failed, once more or for the first time.
func (f Failure) Again(p Plan, err error) Failure {
	next := Failure{Row: p.Row, Act: p.Wants(), Text: err.Error(), Times: 1}
	if f.Of(p) {
		next.Times += f.Times
	}
	return next
}

// Unfit is an order to restore that this replica has tried to accept, and could not; zero: there is none.
type Unfit struct {
	Order uint64
	Why   string
	// Until is when it is tried again.
	Until time.Time
}

// Wants is the act that the row wants, also where it is put off.
func (p Plan) Wants() Act {
	if p.PutOff != "" {
		return p.PutOff
	}
	return p.Act
}

// putOff waits with the plan's act.
func (p Plan) putOff() Plan {
	p.PutOff, p.Act = p.Act, ActWait
	return p
}

// heed is the plan in the light of what was tried before: its step is put off, or what it waits for is said.
func (o Observation) heed(p Plan, now time.Time) Plan {
	early := o.tooEarly(p, now)
	if early {
		p = p.putOff().Waiting(WaitDoesNotStayUp, fmt.Sprintf("etcd was started %d times, one soon after the other, "+
			"and has ended each time: %s.", o.Tries.Starts.Runs, o.saidAtItsEnd()),
			fmt.Sprintf("It is started again by itself, at most %s after its last start.", mostDistanceOf(p.Joins())))
	}
	switch what, least := o.fullDisk(p, early); {
	case what != "" && o.Room.Total != 0 && o.Room.Free < least:
		return p.waitingForRoom(what, o.Room, o.Names.DataDir)
	case !early && p.Blocked == nil && o.Tries.Failed.Of(p):
		return p.Waiting(WaitStepFailed, fmt.Sprintf("the step to %s failed: %v.", p.Act, o.Tries.Failed.Text),
			"It is tried again by itself.")
	}
	return p
}

// tooEarly: the plan starts a member that has just ended, again, or takes the incarnation that comes first.
func (o Observation) tooEarly(p Plan, now time.Time) bool {
	starts := o.Tries.Starts
	return !o.Running && p.startsMember() && starts.Runs > 1 && starts.Last.Add(starts.distance(p.Joins())).After(now)
}

// startsMember: the plan starts etcd, or takes the incarnation that comes first.
func (p Plan) startsMember() bool {
	switch p.Wants() {
	case ActStart, ActStartJoined, ActSeed, ActForm, ActTakeIncarnation:
		return true
	}
	return false
}

func (o Observation) saidAtItsEnd() string {
	said := "its log says why"
	if o.LastWords != "" {
		said = fmt.Sprintf("it said last %q", o.LastWords)
	}
	if o.Tries.Checked != "" {
		said += "; " + o.Tries.Checked
	}
	return said
}

const (
	// runRoom is what has to be free on the data disk for a member to go on: two files of its log, of which it makes
	// the next one ahead.
	runRoom = JoinSpare
	// leastRoom is less than one file of the log. A member that does not stay up has no other reason to be named
	// where there is less.
	leastRoom = runRoom / 2
)

// saysNoSpace reports whether a text says that the disk is full, as the system spells it: of what another process does
// only the text is left.
func saysNoSpace(text string) bool { return strings.Contains(text, "no space left on device") }

// fullDisk is what shows that the data disk is too full for the plan, if it has less room than that. What else fails on
// a full disk fails because of it, so this wait stands before any other. It is known from what happened, and never from
// the room alone: a member runs on a disk that is nearly full for as long as its log and its database fit.
func (o Observation) fullDisk(p Plan, early bool) (what string, least int64) {
	starts := !o.Running && p.startsMember()
	switch {
	case o.Tries.Failed.Of(p) && saysNoSpace(o.Tries.Failed.Text):
		return fmt.Sprintf("the step to %s failed: %s", p.Wants(), o.Tries.Failed.Text), runRoom
	case starts && saysNoSpace(o.LastWords):
		return endedForSpace, runRoom
	case starts && early:
		return fmt.Sprintf("etcd was started %d times, one soon after the other, and has ended each time",
			o.Tries.Starts.Runs), leastRoom
	}
	return "", 0
}

const endedForSpace = "etcd ended for want of space"

func (p Plan) waitingForRoom(what string, room Room, dir string) Plan {
	return p.Waiting(WaitNoRoom, fmt.Sprintf("the data disk is full: it has %d MiB free, and etcd needs %d MiB to "+
		"go on; "+
		"%s.", room.Free>>20, int64(runRoom)>>20, what),
		fmt.Sprintf("Free at least %d MiB in %s, or make the disk larger; then it goes on by itself. "+
			"The oldest directories in its `archive/` can be moved to another disk; delete one only when this "+
			"replica is a voter again. Leave `etcd/` alone.", (runRoom-room.Free+1<<20-1)>>20, dir))
}

// EndedOnAFullDisk is the wait of a running replica whose member has ended for want of space; nil: it has not. It is
// shown at once: the next observation may be seconds away, and after a few such ends the agent stops everything, which
// takes a minute in which nothing is observed.
func EndedOnAFullDisk(end MemberEnd, room Room, dir string) *replica.Wait {
	if !saysNoSpace(end.Text) || room.Total == 0 || room.Free >= runRoom {
		return nil
	}
	return Plan{Row: RowRunning}.waitingForRoom(endedForSpace, room, dir).Blocked
}

// FailedForSpace: the step that failed last failed because the disk is full, so its room is asked for.
func (t Tries) FailedForSpace() bool { return t.Failed.Times > 0 && saysNoSpace(t.Failed.Text) }
