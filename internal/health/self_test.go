package health

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/report"
)

func TestRestartsAreCountedInWords(t *testing.T) {
	for restarts, want := range map[int]string{0: "x is crash-looping.", 1: "x is crash-looping, started again once.",
		7: "x is crash-looping, started again 7 times."} {
		c := report.Component{Name: "x", State: "backoff", Restarts: restarts}
		s := report.Sighting{Report: report.Report{Components: []report.Component{c}}}
		if got := componentText(s, "x"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAReplicaIsJudgedByItself(t *testing.T) {
	for name, c := range map[string]struct {
		Condition
		want State
	}{
		"it is ready and waits for nothing":         {Condition{Ready: true}, Well},
		"what passes by itself is no fault":         {Condition{Ready: true, Waits: []string{"paused"}}, Well},
		"a wait that asks for somebody":             {Condition{Ready: true, Waits: []string{"snapshot-overdue"}}, Degraded},
		"a wait that only a newer version has":      {Condition{Ready: true, Waits: []string{"not-yet-known"}}, Degraded},
		"a component that is not the apiserver":     {Condition{Ready: true, Down: []string{"kube-scheduler"}}, Degraded},
		"something that nothing waits for":          {Condition{Ready: true, Other: true}, Degraded},
		"without an apiserver nobody is served":     {Condition{Ready: true, Down: []string{"kube-apiserver"}}, NotServing},
		"a boot that is not done serves nobody yet": {Condition{}, NotServing},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.State(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestAStopThatLeftAProcessIsNoneInOrder(t *testing.T) {
	s := report.Sighting{Age: time.Minute, Report: report.Report{Phase: "stopping",
		Components: []report.Component{{Name: "etcd", State: "stopped"}}}}
	r := Replica{State: ReplicaStopped, seen: &s}
	if _, _, what := (&judgement{}).describe(r); what != "It was stopped in order, 1 min ago." {
		t.Errorf("%q", what)
	}
	s.Components[0].State = "parked"
	if _, _, what := (&judgement{}).describe(r); what != "It was asked to stop, 1 min ago, and could not stop etcd." {
		t.Errorf("%q", what)
	}
}
