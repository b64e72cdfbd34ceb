package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/agent/election"
	"github.com/quorate/quorate/etcdmember/table"
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
		if err := a.stopElected(in.cluster)(time.Second); err != nil {
			t.Fatal(err)
		}
		c.fit(t.Context())
		if runs() {
			t.Errorf("it is %q without the Lease", f.state("ccm"))
		}
	}
	f.want(notFitted)
}

// Another replica is let try where a component does not get ready, and not often.
func TestAReplicaYieldsWhereAComponentDoesNotGetReady(t *testing.T) {
	_, a, in := renewing(t)
	m := newMember(t, a, in.identified, threeOf(nil))
	in.membership = a.membership
	supervised(t, a)
	in.cluster.Components["ccm"] = replica.Component{Enabled: new(true), Binary: "/bin/false",
		Elect: replica.ElectAgent}
	long := time.Now().Add(-yieldPatience)
	worth := func(ready time.Time) string {
		return a.worthYielding(t.Context(), joined{in}, map[string]time.Time{"ccm": ready})
	}
	yields := func(ready time.Time) bool { return worth(ready) != "" }
	if why := worth(long); why != "ccm is not ready here: it was not started" {
		t.Errorf("it was never started: %q", why)
	}
	if yields(time.Now()) {
		t.Error("the term has only begun")
	}
	if err := a.supervisor.Start(sleeper("ccm")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready", func() bool { s, _ := a.supervisor.StatusOf("ccm"); return s.State == supervisor.Ready })
	if yields(long) {
		t.Error("it is ready")
	}
	if err := a.supervisor.Stop(t.Context(), "ccm"); err != nil {
		t.Fatal(err)
	}
	failing := supervisor.Spec{Name: "ccm", Path: "/bin/false", Start: &supervisor.Probe{Limit: time.Minute,
		Check: func(context.Context) error { return errors.New("no") }}}
	if err := a.supervisor.Start(failing); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it fails again and again",
		func() bool { s, _ := a.supervisor.StatusOf("ccm"); return s.Restarts > 0 })
	if !yields(long) {
		t.Error("it fails here")
	}
	if yields(time.Now().Add(-yieldPatience / 2)) {
		t.Error("it was ready half of its time ago")
	}
	a.yielded = time.Now().Add(-yieldDistance / 2)
	if yields(long) {
		t.Error("it went round a moment ago")
	}
	a.yielded = time.Time{}
	m.is(func(s *table.MemberStatus) { s.Members = s.Members[:1] })
	if yields(long) {
		t.Error("there is nobody else")
	}
}
