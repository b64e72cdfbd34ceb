package table

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const saidFull = "failed to save Raft hard state and entries: write 0.wal: no space left on device"

// What a full disk is told from: what happened, and not the room alone.
func TestAFullDiskIsToldFromWhatHappened(t *testing.T) {
	full := func(row Row, act Act, text string) Tries {
		return Tries{Failed: Failure{Row: row, Act: act, Text: text, Times: 1}}
	}
	early := Tries{Starts: Starts{Last: t0, Runs: 3}}
	for _, tc := range []struct {
		name  string
		facts func() Facts
		free  int64 // MiB; negative: it is not known
		end   string
		tries Tries
		want  string // of what is said; empty: it is no wait for room
		act   Act
	}{
		{"a start on a disk that is nearly full", from(three), 1, "", Tries{}, "", ActStart},
		{"etcd ended for want of space", from(three), 1, saidFull, Tries{},
			"it has 1 MiB free, and etcd needs 128 MiB to go on; etcd ended for want of space.", ActStart},
		{"and there is room again", from(three), 128, saidFull, Tries{}, "", ActStart},
		{"and its room is not known", from(three), -1, saidFull, Tries{}, "", ActStart},
		{"and it runs again", from(three, running), 1, saidFull, Tries{}, "", ActKeep},
		{"and it is started too soon", from(three), 1, saidFull, early, "etcd ended for want of space", ActWait},
		{"it does not stay up, and there is not one file's room", from(three), 63, "", early,
			"etcd was started 3 times", ActWait},
		{"a step failed for want of space", from(three, running), 1, "",
			full(RowRunning, ActKeep, "write: no space left on device"),
			"the step to keep failed: write: no space left on device", ActKeep},
		{"another process's step did", from(three), 1, "", full(28, ActStart, "make: copy: no space left on device"),
			"no space left on device", ActStart},
		{"another step did", from(three), 1, "", full(28, ActTakeIncarnation, "write: no space left on device"), "",
			ActStart},
		{"and it runs again, not formed yet", from(blank, emptyClaim, seeding, running1), 1, saidFull, Tries{}, "",
			ActForm},
		{"and it is not to start", from(three, isClosed), 1, saidFull, Tries{}, "", ActWriteStopped},
		{"and its start failed for want of space too", from(three), 1, saidFull,
			full(28, ActStart, "mkdir: no space left on device"), "the step to start failed: mkdir", ActStart},
		{"a step failed for another reason", from(three, running), 1, "", full(RowRunning, ActKeep, "timeout"), "",
			ActKeep},
		{"the incarnation that comes before a start is too soon", from(three, reboot), 63, "", early,
			"etcd was started 3 times", ActWait},
	} {
		f := tc.facts()
		f.Disk.DataDir, f.Tries, f.Directory.End.Text = "/data", tc.tries, tc.end
		if tc.free >= 0 {
			f.Room = Room{Free: tc.free << 20, Total: 1 << 40}
		}
		p := decided(f)
		is := p.Blocked != nil && p.Blocked.Name == WaitNoRoom
		if is != (tc.want != "") || p.Act != tc.act {
			t.Errorf("%s: %s, %+v", tc.name, p.Act, p.Blocked)
		} else if is && (!strings.Contains(p.Blocked.Reason, tc.want) || !strings.Contains(p.Blocked.Next,
			fmt.Sprintf("at least %d MiB in /data,", 128-tc.free))) {
			t.Errorf("%s: %+v", tc.name, p.Blocked)
		}
	}
}

// A running replica whose member has ended on a full disk says so before the next observation.
func TestAMemberThatEndedOnAFullDiskIsTold(t *testing.T) {
	for _, tc := range []struct {
		text string
		room Room
		want bool
	}{
		{saidFull, Room{0, 1 << 30}, true}, {saidFull, Room{runRoom - 1, 1 << 30}, true},
		{saidFull, Room{runRoom, 1 << 30}, false}, {saidFull, Room{}, false}, {"killed", Room{0, 1 << 30}, false},
	} {
		w := EndedOnAFullDisk(MemberEnd{Text: tc.text}, tc.room, "/data")
		if (w != nil) != tc.want || w != nil && (w.Name != WaitNoRoom || w.Row != RowRunning.String()) {
			t.Errorf("%q with %+v: %+v", tc.text, tc.room, w)
		}
	}
}

// A member that does not stay up is started at its pace; until then it waits, and says what it waits with.
func TestAStartThatIsTooSoonIsPutOff(t *testing.T) {
	starts := func(runs int, ago time.Duration) func(*Facts) {
		return func(f *Facts) { f.Tries.Starts = Starts{Last: f.Now.Add(-ago), Runs: runs} }
	}
	joins := joining("", 0, false)
	for _, tc := range []struct {
		name  string
		facts func() Facts
		act   Act
		wants Act
	}{
		{"the first start", from(three), ActStart, ActStart},
		{"the second is at once", from(three, starts(1, 0)), ActStart, ActStart},
		{"also where the clock has gone back", from(three, starts(1, -time.Second)), ActStart, ActStart},
		{"the third is not", from(three, starts(2, 0)), ActWait, ActStart},
		{"but a second later", from(three, starts(2, time.Second)), ActStart, ActStart},
		{"the tenth is after half a minute", from(three, starts(9, mostDistance-1)), ActWait, ActStart},
		{"at the latest", from(three, starts(5000, mostDistance)), ActStart, ActStart},
		{"a join takes longer", from(three, wiped, withQuorum, starts(5000, mostDistance)), ActWait,
			ActTakeIncarnation},
		{"and not for ever", from(three, wiped, withQuorum, starts(5000, mostJoinDistance)), ActTakeIncarnation,
			ActTakeIncarnation},
		{"its other steps are not put off", from(three, joins, starts(9, 0)), ActMarkAdding, ActMarkAdding},
		{"nor is anything of a member that runs", from(three, running, starts(9, 0)), ActKeep, ActKeep},
		{"nor that it forms its epoch", from(blank, emptyClaim, seeding, running1, starts(9, 0)), ActForm, ActForm},
	} {
		p := decided(tc.facts())
		if p.Act != tc.act || p.Wants() != tc.wants {
			t.Errorf("%s: %s, which wants to %s, %+v", tc.name, p.Act, p.Wants(), p.Blocked)
		}
		if put := p.Act != p.Wants(); put != (p.Blocked != nil && p.Blocked.Name == WaitDoesNotStayUp) {
			t.Errorf("%s: %+v", tc.name, p.Blocked)
		}
	}
	f := from(three, ended(1, "boom"), starts(4, 0), func(f *Facts) { f.Tries.Checked = "its database is sound" })()
	if r := decided(f).Blocked.Reason; r != "etcd was started 4 times, one soon after the other, and has ended "+
		"each time: "+
		"it said last \"boom\"; its database is sound." {
		t.Errorf("it says: %s", r)
	}
}

// A join's pace is that of what starts its member, and of its incarnation.
func TestWhatJoins(t *testing.T) {
	for _, tc := range []struct {
		p    Plan
		want bool
	}{
		{Plan{Act: ActStartJoined, Step: joinStart}, true},
		{Plan{Act: ActWait, PutOff: ActStartJoined, Step: joinStart}, true},
		{Plan{Act: ActTakeIncarnation, Step: joinPending}, true},
		{Plan{Act: ActTakeIncarnation}, false},
		{Plan{Act: ActWait, Step: restoreSilence}, false},
		{Plan{Act: ActStart}, false},
	} {
		if got := tc.p.Joins(); got != tc.want {
			t.Errorf("%+v: %v", tc.p, got)
		}
	}
}

func TestStartsThatDoNotLastAreFurtherAndFurtherApart(t *testing.T) {
	var s Starts
	var distances []time.Duration
	now := t0
	for range 8 {
		s = s.Again(false, now)
		distances = append(distances, s.distance(false))
		now = now.Add(s.distance(false) + 300*time.Millisecond)
	}
	if distances[0] != 0 || distances[1] != time.Second || distances[2] != 2*time.Second ||
		distances[7] != 30*time.Second {
		t.Errorf("distances: %v", distances)
	}
	if s = s.Again(false, now.Add(2*time.Minute)); s.distance(false) != 0 {
		t.Error("one that ran for minutes counts anew")
	}
	day := now.Add(24 * time.Hour)
	joins := 0
	for ; now.Before(day); joins++ {
		s = s.Again(true, now)
		now = now.Add(s.distance(true) + 300*time.Millisecond)
	}
	if d := s.distance(false); d != mostDistance {
		t.Errorf("a start that is no join's waits %s", d)
	}
	if joins > 160 {
		t.Errorf("%d joins in a day, each of which stays in the record", joins)
	}
}

// An order that cannot be carried out here is tried again, and not before its rest is over.
func TestAnUnfitOrderRestsAndIsTold(t *testing.T) {
	for _, tc := range []struct {
		name string
		of   uint64
		rest time.Duration
		act  Act
		want string
	}{
		{"none was tried", 0, 0, ActAccept, ""}, {"another was", 2, time.Hour, ActAccept, ""},
		{"it rests", 1, time.Nanosecond, ActWait, WaitUnfit}, {"and is tried again", 1, 0, ActAccept, WaitUnfit},
	} {
		f := from(three, running, orderMe, unaccepted)()
		f.Tries.Unfit = Unfit{Order: tc.of, Why: "too large", Until: f.Now.Add(tc.rest)}
		p := decided(f)
		name := ""
		if p.Blocked != nil {
			name = p.Blocked.Name
		}
		if p.Row != 8 || p.Act != tc.act || p.Wants() != ActAccept || name != tc.want {
			t.Errorf("%s: row %s: %s, %+v", tc.name, p.Row, p.Act, p.Blocked)
		}
	}
}

// A step that failed is tried again, and told as what is waited for as long as it is the next one.
func TestAStepThatFailedIsTold(t *testing.T) {
	start := Plan{Row: 28, Act: ActStart}
	for name, tc := range map[string]struct {
		failed Failure
		want   string
	}{
		"it":                   {Failure{}.Again(start, errors.New("broken")), WaitStepFailed},
		"the same of a row":    {Failure{Row: 25, Act: ActStart, Text: "broken", Times: 1}, ""},
		"another of this row":  {Failure{Row: 28, Act: ActConfirmIncarnation, Text: "broken", Times: 1}, ""},
		"none":                 {Failure{Row: 28, Act: ActStart}, ""},
		"what has a wait also": {Failure{Row: 1, Act: ActStart, Text: "broken", Times: 1}, "record-unreadable"},
	} {
		f := from(three, func(f *Facts) { f.Tries.Failed = tc.failed })()
		if tc.failed.Row == 1 {
			unreadable(&f)
		}
		p := decided(f)
		got := ""
		if p.Blocked != nil {
			got = p.Blocked.Name
		}
		if got != tc.want || p.Act != ActStart {
			t.Errorf("%s failed: %s, it waits for %q", name, p.Act, got)
		}
	}
	again := Failure{}.Again(start, errors.New("one")).Again(Plan{Row: 28, Act: ActWait, PutOff: ActStart},
		errors.New("two"))
	if again != (Failure{Row: 28, Act: ActStart, Text: "two", Times: 2}) {
		t.Errorf("%+v", again)
	}
	if other := again.Again(Plan{Row: 28, Act: ActStop}, errors.New("three")); other.Times != 1 {
		t.Errorf("%+v", other)
	}
}
