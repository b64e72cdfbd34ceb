package kubeletwatch

import (
	"testing"
	"time"
)

// A runtime that hangs again and again is restarted four times at growing distances, and then no more: also by an agent
// that was started again in between, and knows what was written down.
func TestTheBudgetIsExact(t *testing.T) {
	w := well()
	w.CRI = missing(Silent, time.Minute)
	var acts []time.Duration
	for at := now; at < now+24*time.Hour; at += time.Second {
		w.Now, w.CRI.Since, w.Kubelet.Pinged = at, at-time.Minute, at
		d := Decide(limits, w.Facts, w.runtime, w.kubelet)
		w.runtime = w.runtime.Settle(d.Runtime, at)
		if d.Runtime.Act != Nothing {
			acts = append(acts, at-now)
			w.runtime = w.runtime.Did(d.Runtime.Act, w.Runtime, at)
		}
		w.runtime = Memory{Acts: w.runtime.Acts} // the agent is started again each second
	}
	want := []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute}
	if len(acts) != len(want) {
		t.Fatalf("it acted %d times in a day: %s", len(acts), acts)
	}
	for i := range want {
		if acts[i] != want[i] {
			t.Errorf("act %d came after %s, want %s", i+1, acts[i], want[i])
		}
	}
}

func TestHalfAnHourOfHealthGivesTheBudgetBack(t *testing.T) {
	m := Memory{Acts: []time.Duration{1, 2, 3, 4}}
	for at := now; at < now+calm; at += time.Minute {
		if m = m.Settle(Verdict{State: Running}, at); len(m.Acts) != 4 {
			t.Fatalf("the budget was whole again after %s", at-now)
		}
	}
	sick := m.Settle(Verdict{State: Hung}, now+calm-time.Second)
	if sick = sick.Settle(Verdict{State: Running}, now+calm); len(sick.Acts) != 4 {
		t.Error("a moment of ill health does not count")
	}
	if m = m.Settle(Verdict{State: PortBlocked}, now+calm); m.Acts != nil {
		t.Error("half an hour of health does not count")
	}
}

func TestNoteCountsWhatSystemdStartsAgain(t *testing.T) {
	u := well().Kubelet
	m, ended := Memory{}.Note(u, now)
	if ended || len(m.Exits) != 0 {
		t.Fatalf("the first observation is no exit: %+v", m)
	}
	u.PID = 0
	if m, ended = m.Note(u, now+1); !ended || len(m.Exits) != 0 {
		t.Errorf("its process has gone: ended %t, %+v", ended, m)
	}
	u.PID, u.Started, u.Restarts = 201, now+2, 1
	if m, ended = m.Note(u, now+2); ended || len(m.Exits) != 1 {
		t.Errorf("systemd has started it again: ended %t, %+v", ended, m)
	}
	u.PID, u.Started, u.Restarts = 202, now+3, 0
	if m, ended = m.Note(u, now+3); !ended || len(m.Exits) != 1 {
		t.Errorf("a person has restarted it: ended %t, %+v", ended, m)
	}
	if m, _ = m.Note(u, now+2+loopSpan+1); len(m.Exits) != 0 {
		t.Errorf("old exits count: %+v", m)
	}
}

// A former main process that outlives SIGKILL is known for as long as it is there, whatever is started next to it.
func TestAFormerMainProcessIsKnownWhileItIsThere(t *testing.T) {
	u := well().Kubelet
	old, shim := Process{200, 7}, Process{300, 8}
	u.Ticks = 7
	m, _ := Memory{}.Note(u, now)
	u.Unkilled = []Process{shim}
	if m, _ = m.Note(u, now+1); m.Unkilled != 0 || m.unkilled(u) != nil {
		t.Errorf("a shim: %+v", m)
	}
	u.Unkilled = []Process{shim, old}
	m, _ = m.Note(u, now+2)
	for i, ticks := range []uint64{9, 10, 11} {
		u.PID, u.Ticks, u.Started = 400+i, ticks, now+3
		if m, _ = m.Note(u, now+3); m.Unkilled != now+2 || *m.unkilled(u) != old || len(m.Mains) != 2 {
			t.Errorf("another runs next to it: %+v", m)
		}
	}
	u.PID, u.Ticks = 0, 0
	if m, _ = m.Note(u, now+4); len(m.Mains) != 1 || *m.unkilled(u) != old {
		t.Errorf("it is parked: %+v", m)
	}
	u.Unkilled = []Process{shim}
	if m, _ = m.Note(u, now+5); m.Unkilled != 0 || len(m.Mains) != 0 {
		t.Errorf("it has gone: %+v", m)
	}
}

// A person who starts a parked unit has it back: what they stop then stays stopped.
func TestAParkedUnitThatSomebodyStartedIsNotParked(t *testing.T) {
	u := well().Kubelet
	m := Memory{Parked: &Process{PID: 7}}
	m, _ = m.Note(u, now)
	u.Active, u.PID = "inactive", 0
	m, _ = m.Note(u, now+1)
	if v, _ := decideUnit(u, "", m, now+1); v.State != Stopped || v.Act != Nothing {
		t.Errorf("got %+v", v)
	}
}

func TestAnswersCountMissesInARow(t *testing.T) {
	a := Answers{}.Next(Silent, "a", 1).Next(Unreachable, "b", 2)
	if a.Misses != 2 || a.Since != 1 || a.Last != Unreachable || a.Error != "b" || a.Ever {
		t.Errorf("two misses: %+v", a)
	}
	if a = a.Next(Answered, "", 3); a.Misses != 0 || !a.Ever || a.Error != "" {
		t.Errorf("an answer: %+v", a)
	}
	if a = a.Next(Silent, "c", 4); a.Misses != 1 || a.Since != 4 || !a.Ever {
		t.Errorf("a miss after it: %+v", a)
	}
}
