package rivals

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var began = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)

func TestOnlyWordsAfterTheFaultAboutItCount(t *testing.T) {
	journal := `{"__REALTIME_TIMESTAMP":"1795514399000000","MESSAGE":"'kubelet' failed before"}
{"__REALTIME_TIMESTAMP":"1795514401500000","MESSAGE":"'kubelet' process PID changed"}
{"__REALTIME_TIMESTAMP":"1795514402000000","MESSAGE":[1,2]}
{"__REALTIME_TIMESTAMP":"1795514403000000","MESSAGE":"'kubelet' failed protocol test"}
`
	at, err := linesOfJournal(journal, began, []string{"failed"})
	if err != nil || len(at) != 1 || at[0].Sub(began) != 3*time.Second {
		t.Errorf("found %v, %v", at, err)
	}
	if at, err = linesOfJournal(journal, began, nil); err != nil || len(at) != 3 {
		t.Errorf("without texts found %v, %v", at, err)
	}
	if _, err := linesOfJournal("no JSON", began, nil); err == nil {
		t.Error("what is no journal was read")
	}
}

func TestTheAgentsWordsAreThoseOfAUnitThatIsNotWell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	log := `time=2026-11-24T09:59:59Z level=WARN msg="watched unit" unit=kubelet.service what=restart cause=hung
time=2026-11-24T10:00:01Z level=INFO msg="phase done" phase=etcd state=hung
time=2026-11-24T10:00:02Z level=INFO msg="watched unit" unit=kubelet.service state=runtime-first was=running reason=x
time=2026-11-24T10:00:03Z level=INFO msg="watched unit" unit=containerd.service state=hung was=running reason=x
[   15.8] quorate[57]: time=2026-11-24T10:00:04Z level=WARN msg="watched unit" unit=containerd.service what=restart
`
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := linesOfAgent(path, began)
	want := []time.Time{began.Add(3 * time.Second), began.Add(4 * time.Second)}
	if err != nil || !slices.Equal(at, want) {
		t.Errorf("found %v, %v, want %v", at, err, want)
	}
	if at, err := linesOfAgent(path+".1", began); err != nil || len(at) > 0 {
		t.Errorf("a log that has gone: %v, %v", at, err)
	}
}

// Each fault is asked of every rival under its own name, and has time for the slowest.
func TestFaultsAreNamedAndBounded(t *testing.T) {
	names := Faults()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			t.Errorf("two faults are called %q", name)
		}
	}
	for _, lane := range lanes {
		for _, f := range lane {
			if f.begin == "" || f.limit < oneCycle || f.after != "" && f.afterAt >= f.limit {
				t.Errorf("%q has no beginning, or no time: %+v", f.Name, f)
			}
			if f.heals != Heals(f.Name) || f.heals && f.kubelet+f.runtime == 0 {
				t.Errorf("nothing that makes %q good is right", f.Name)
			}
		}
	}
}

func TestEveryRivalHasItsFiles(t *testing.T) {
	for _, name := range []string{"monitrc", "kubelet-monitor.sh", "runtime-monitor.sh", "pod.yaml"} {
		if !strings.HasPrefix(file(name), "#") {
			t.Errorf("%s does not say what it is", name)
		}
	}
	for i, r := range all() {
		if r.name != Names[i] || r.period <= 0 || r.install == nil || r.words == nil {
			t.Errorf("rival %d is %+v, want %s", i, r, Names[i])
		}
	}
}

// What is seen of the units is counted from a time on.
func TestTheObserverCountsFromAFaultOn(t *testing.T) {
	o := &observer{living: map[string][]int{"kubelet": {1}, "containerd": {2}}, asked: map[string]time.Time{},
		answered: map[string]bool{"kubelet": true, "containerd": true},
		begun:    map[string][]start{"kubelet": {{1, began.Add(-time.Hour)}, {3, began.Add(time.Second)}}}}
	if o.asked["kubelet"] = began.Add(-time.Second); o.well(began) || o.ill(began) {
		t.Error("an answer from before the fault counts")
	}
	o.asked["kubelet"], o.asked["containerd"] = began.Add(time.Second), began.Add(time.Second)
	if !o.well(began) || o.ill(began) {
		t.Error("answers after the fault do not count")
	}
	if o.answered["containerd"] = false; o.well(began) || !o.ill(began) {
		t.Error("a runtime that does not answer is well")
	}
	if n := o.starts("kubelet", began); n != 1 {
		t.Errorf("%d starts", n)
	}
	if at := o.calmSince(); !at.Equal(began.Add(time.Second)) {
		t.Errorf("calm since %s", at)
	}
}

// A subshell stands for a child of the kubelet that has not executed its program yet.
func TestAChildBetweenForkAndExecIsNoStart(t *testing.T) {
	shell := exec.CommandContext(t.Context(), "sh", "-c", "(read x <&3; :) 3<&0 & echo $$ $!; wait")
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer shell.Wait() //nolint:errcheck // it ends when its input does
	defer in.Close()
	var parent, child int
	if _, err := fmt.Fscan(out, &parent, &child); err != nil {
		t.Fatal(err)
	}
	procs := filepath.Join(t.TempDir(), "cgroup.procs")
	if err := os.WriteFile(procs, fmt.Appendf(nil, "%d\n%d\n", parent, child), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := programsIn(procs, "sh"); !slices.Equal(got, []int{parent}) {
		t.Errorf("found %v of %d and its child %d", got, parent, child)
	}
}
