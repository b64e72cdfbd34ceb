package leaders

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// Another replica is let try where a component does not get ready, and not often.
func TestAReplicaYieldsWhereAComponentDoesNotGetReady(t *testing.T) {
	w := newWorld(t, nil)
	c := NewCandidate(w.leaders.log, w.leaders.supervisor)
	w.cluster.Components["ccm"] = replica.Component{Enabled: new(true), Binary: "/bin/false",
		Elect: replica.ElectAgent}
	long := time.Now().Add(-yieldPatience)
	worth := func(ready time.Time) string {
		return c.worthYielding(t.Context(), w.leaders.replica(), map[string]time.Time{"ccm": ready})
	}
	yields := func(ready time.Time) bool { return worth(ready) != "" }
	if why := worth(long); why != "ccm is not ready here: it was not started" {
		t.Errorf("it was never started: %q", why)
	}
	if yields(time.Now()) {
		t.Error("the term has only begun")
	}
	if err := c.supervisor.Start(sleeper("ccm")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready", func() bool { s, _ := c.supervisor.StatusOf("ccm"); return s.State == supervisor.Ready })
	if yields(long) {
		t.Error("it is ready")
	}
	if err := c.supervisor.Stop(t.Context(), "ccm"); err != nil {
		t.Fatal(err)
	}
	failing := supervisor.Spec{Name: "ccm", Path: "/bin/false", Start: &supervisor.Probe{Limit: time.Minute,
		Check: func(context.Context) error { return errors.New("no") }}}
	if err := c.supervisor.Start(failing); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it fails again and again",
		func() bool { s, _ := c.supervisor.StatusOf("ccm"); return s.Restarts > 0 })
	if !yields(long) {
		t.Error("it fails here")
	}
	if yields(time.Now().Add(-yieldPatience / 2)) {
		t.Error("it was ready half of its time ago")
	}
	c.yielded = time.Now().Add(-yieldDistance / 2)
	if yields(long) {
		t.Error("it went round a moment ago")
	}
	c.yielded = time.Time{}
	w.members(func(s *table.MemberStatus) { s.Members = s.Members[:1] })
	if yields(long) {
		t.Error("there is nobody else")
	}
}
