package agent

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/supervisor"
)

// memberChild is the child of an agent that is supervised, with a script in place of this program.
func memberChild(t *testing.T, script string) *etcdChild {
	t.Helper()
	a := newVM(t).agent()
	supervised(t, a)
	self := filepath.Join(t.TempDir(), "quorate")
	if err := os.WriteFile(self, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &etcdChild{supervisor: a.supervisor, self: self}
}

func TestAMemberIsStartedInPlaceOfTheFormerOne(t *testing.T) {
	c := memberChild(t, "exec sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	self := c.self
	c.self = "/no/such/program"
	if err := c.Start(ctx, "/run/one/etcd.json"); err != nil {
		t.Fatalf("one that cannot be launched is tried again, which is no error: %v", err)
	}
	if c.Running() {
		t.Error("one that waits for its next start runs")
	}
	c.self = self
	former := 0
	for _, config := range []string{"/run/two/etcd.json", "/run/three/etcd.json"} {
		if err := c.Start(ctx, config); err != nil {
			t.Fatal(err)
		}
		s, _ := c.supervisor.StatusOf(etcdName)
		if !c.Running() || s.PID == 0 || s.PID == former {
			t.Errorf("with %s: %+v, after pid %d", config, s, former)
		}
		former = s.PID
	}
	if err := c.Stop(ctx); err != nil || c.Running() {
		t.Errorf("stopped: %v, runs: %t", err, c.Running())
	}
}

func TestALaunchOfTheMemberThatHangsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// it is not run, so nothing is ever launched
		c := &etcdChild{supervisor: supervisor.New(supervisor.Config{}), self: "/bin/quorate"}
		begin := time.Now()
		err := c.Start(context.Background(), "/run/quorate/etcd.json")
		if took := time.Since(begin); err == nil || err.Error() != "the launch of /bin/quorate hangs for 10s" ||
			took != launchLimit {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// A launch may hang before there is a process: here for as long as the former run does not end.
func TestAMemberThatIsBeingLaunchedRuns(t *testing.T) {
	a, groups := newVM(t).agent(), t.TempDir()
	populated := func(n string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(groups, etcdName, "cgroup.events"), []byte("populated "+n+"\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(groups, etcdName), 0o700); err != nil {
		t.Fatal(err)
	}
	populated("1")
	a.supervisor = supervisor.New(supervisor.Config{Log: a.cfg.Log, LogDir: a.cfg.LogDir, Cgroup: groups})
	supervised(t, a)
	c := &etcdChild{supervisor: a.supervisor, self: "/bin/quorate"}
	if err := a.supervisor.Start(c.spec("/run/quorate/etcd.sock")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is being launched", func() bool {
		s, _ := a.supervisor.StatusOf(etcdName)
		return s.State == supervisor.Starting
	})
	if s, _ := a.supervisor.StatusOf(etcdName); !c.Running() || s.PID != 0 {
		t.Errorf("runs: %t, %+v", c.Running(), s)
	}
	populated("0")
	eventually(t, "it could not be", func() bool { return !c.Running() })
}

// answering is a member's socket on which it says how it is, and whether it is alive: an HTTP status.
func answering(t *testing.T, socket string, status *table.MemberStatus, alive *int) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/alive" {
			http.Error(w, "no answer", *alive)
			return
		}
		if err := json.NewEncoder(w).Encode(status); err != nil {
			t.Error(err)
		}
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
}

func TestAMemberThatIsReadyRuns(t *testing.T) {
	c := memberChild(t, "exec sleep 1000")
	config := filepath.Join(t.TempDir(), "etcd.json")
	alive := http.StatusOK
	answering(t, member.SocketOf(config), &table.MemberStatus{Leader: 8}, &alive)
	if err := c.Start(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready",
		func() bool { s, _ := c.supervisor.StatusOf(etcdName); return s.State == supervisor.Ready })
	if !c.Running() {
		t.Error("a member that has come up is taken for one that does not run")
	}
}

// The limits are times: what a check costs that hangs does not count.
func TestALimitOfAMemberIsATime(t *testing.T) {
	s := (&etcdChild{self: "/bin/quorate"}).spec("/run/quorate/etcd.sock")
	if s.Start.Limit != 10*time.Minute || s.Live.Limit != 20*time.Second {
		t.Errorf("a start may take %s, and a member may hang for %s", s.Start.Limit, s.Live.Limit)
	}
	if got := s.Live.Period + s.Live.Timeout; got >= s.Live.Limit/2 {
		t.Errorf("a member is started again for one or two checks that fail, each %s", got)
	}
	if got := strings.Join(s.Args, " "); got != "run-etcd --config /run/quorate/etcd.json" {
		t.Errorf("it is run with %s", got)
	}
}

func TestAMemberIsReadyWithALeaderAndWhileItIsAlive(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "etcd.sock")
	now, alive := table.MemberStatus{MemberID: 7}, http.StatusOK
	answering(t, socket, &now, &alive)
	s := (&etcdChild{self: "/bin/quorate"}).spec(socket)
	asked := func(p *supervisor.Probe) string {
		if err := p.Check(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	}
	if up, ready := asked(s.Start), asked(s.Ready); up != "" || !strings.HasSuffix(ready, "knows of no leader") {
		t.Errorf("without a leader: up %q, ready %q", up, ready)
	}
	now.Leader, alive = 8, http.StatusServiceUnavailable
	// The supervisor asks for Live only while Ready fails: one that is stuck must not be ready, at no check.
	for _, p := range []*supervisor.Probe{s.Ready, s.Ready, s.Live} {
		if stuck := asked(p); !strings.Contains(stuck, "stuck: no answer") {
			t.Errorf("a member that is stuck: %q", stuck)
		}
	}
	alive = http.StatusOK
	if ready := asked(s.Ready); ready != "" {
		t.Errorf("with a leader: %q", ready)
	}
	alive = http.StatusServiceUnavailable
	if ready := asked(s.Ready); ready != "" {
		t.Errorf("a member is asked whether it is alive more often than each %s: %q", livePeriod, ready)
	}
}
