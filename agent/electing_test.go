package agent

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/agent/election"
	"github.com/quorate/quorate/agent/leaders"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// lot is an election that is held or not.
type lot struct{ held atomic.Bool }

func (l *lot) Begin(start func() error) error {
	if !l.held.Load() {
		return election.ErrNotHeld
	}
	return start()
}

func (l *lot) Held() bool { return l.held.Load() }

// A component that is elected by the agents runs while the Lease is held, and starts again with the next term.
func TestAnElectedComponentRunsWhileTheLeaseIsHeld(t *testing.T) {
	_, a, in := renewing(t)
	f := newFitting(t, a, in)
	f.put("ccm", loops)
	in.cluster.Components["ccm"] = replica.Component{Enabled: new(true), Binary: f.path("ccm"),
		Elect: replica.ElectAgent}
	c := f.components()
	l := &lot{}
	c.elected = l
	c.fit(t.Context())
	if _, ok := a.supervisor.StatusOf("ccm"); ok {
		t.Error("it runs without the Lease")
	}
	f.want(notFitted)
	runs := func() bool { return f.state("ccm") != supervisor.Stopped && f.state("ccm") != "" }
	for range 2 {
		l.held.Store(true)
		c.fit(t.Context())
		if !runs() {
			t.Fatalf("it is %q with the Lease", f.state("ccm"))
		}
		before, _ := a.supervisor.StatusOf("ccm")
		c.fit(t.Context())
		if after, _ := a.supervisor.StatusOf("ccm"); after.PID != before.PID {
			t.Error("it was started again within the term")
		}
		l.held.Store(false)
		if err := leaders.StopElected(a.supervisor, in.cluster)(time.Second); err != nil {
			t.Fatal(err)
		}
		c.fit(t.Context())
		if runs() {
			t.Errorf("it is %q without the Lease", f.state("ccm"))
		}
	}
	f.want(notFitted)
}
