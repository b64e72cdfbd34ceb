package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func membershipOf(a *Agent, in identified) *etcdmember.Membership {
	m := etcdmember.New(etcdmember.Config{
		Log: a.cfg.Log, Me: in.self, Cluster: in.cluster, Files: in.files,
		TLS:       func() *tls.Config { return etcdTLS(certs.NewEtcdSessions(in.files)) },
		RunDir:    a.cfg.RunDir,
		HostsFile: a.cfg.HostsFile, Waits: a.tracker,
		Record: in.cloud.Record, Compute: in.cloud.Compute, Child: a.etcdChild(),
	})
	return m
}

var update = flag.Bool("update", false, "write the golden files anew")

// A status without anything in it has lists, not null: `jq '.blocked[]'` must not fail.
func TestAnEmptyStatusHasLists(t *testing.T) {
	b, err := json.Marshal(newVM(t).agent().status(t.Context()))
	for _, list := range []string{"members", "components", "leases", "certificates", "steps", "blocked"} {
		if err != nil || !strings.Contains(string(b), `"`+list+`":[]`) {
			t.Errorf("%s: %v: %s", list, err, b)
		}
	}
}

// supervised runs the agent's supervisor for a test.
func supervised(t *testing.T, a *Agent) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.supervisor.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// sleeper is a process that does nothing.
func sleeper(name string, after ...string) supervisor.Spec {
	return supervisor.Spec{Name: name, Path: "/bin/sleep", Args: []string{"1000"}, After: after}
}

// handsOver serves a member's status socket, which says yes to everything. What it is asked goes to the channel.
func handsOver(t *testing.T, m *etcdmember.Membership) <-chan string {
	t.Helper()
	l, err := net.Listen("unix", m.StatusSocket())
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 16)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path
		w.WriteHeader(http.StatusNoContent)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return asked
}

func TestLeavingHandsLeadershipOverFirst(t *testing.T) {
	v := newVM(t)
	a, in := v.identified()
	supervised(t, a)
	a.membership = membershipOf(a, in)
	asked := handsOver(t, a.membership)
	a.leaving.leave(t.Context())
	if len(asked) != 0 {
		t.Errorf("there is no etcd, and it was asked: %s", <-asked)
	}
	if err := a.supervisor.Start(sleeper(etcdName)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	a.leaving.leave(t.Context())
	if len(asked) != 1 || <-asked != "POST /hand-over" || time.Since(begin) > member.HandOverTimeout {
		t.Errorf("after %s: %d questions", time.Since(begin), len(asked))
	}
}

func TestAMemberThatDoesNotHandOverHoldsTheStopUpForTwoSeconds(t *testing.T) {
	v := newVM(t)
	a, in := v.identified()
	supervised(t, a)
	a.membership = membershipOf(a, in)
	l, err := net.Listen("unix", a.membership.StatusSocket()) // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := a.supervisor.Start(sleeper(etcdName)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	a.leaving.leave(t.Context())
	if took := time.Since(begin); took < member.HandOverTimeout || took > member.HandOverTimeout+time.Second {
		t.Errorf("it took %s", took)
	}
}

// kept is an agent whose member runs.
func kept(t *testing.T) (*Agent, joined) {
	t.Helper()
	v := newVM(t)
	a, in := v.identified()
	supervised(t, a)
	return a, joined{certified{recorded: recorded{identified: in, membership: membershipOf(a, in)}}}
}

func TestKeepEndsWithoutAnErrorWhenToldTo(t *testing.T) {
	a, in := kept(t)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(context.Canceled)
	if err := a.keep(ctx, in); err != nil {
		t.Error(err)
	}
	if said := a.cfg.Notify.(*notifier).all(); !slices.Contains(said, "READY") || !slices.Contains(said, "running") {
		t.Errorf("the service manager heard %q", said)
	}
}

func TestKeepEndsWithTheMembershipsReason(t *testing.T) {
	a, in := kept(t)
	ctx, end := context.WithCancelCause(t.Context())
	end(errors.Join(ErrStartAgain, etcdmember.ErrDecideAgain))
	err := a.keep(ctx, in)
	var phase *PhaseError
	if !errors.As(err, &phase) || phase.Phase != PhaseKeep || !errors.Is(err, ErrStartAgain) ||
		!errors.Is(err, etcdmember.ErrDecideAgain) {
		t.Errorf("%v", err)
	}
}

func TestARemovedMemberEndsTheAgent(t *testing.T) {
	a, in := kept(t)
	begin := time.Now()
	spec := supervisor.Spec{Name: etcdName, Path: "/bin/sh", Args: []string{"-c", "exit 10"}}
	if err := a.supervisor.Start(spec); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has exited", func() bool { _, ok := a.supervisor.Exited(etcdName); return ok })
	if err := a.etcdChild().observe(&etcdEnds{last: begin}); !errors.Is(err, member.ErrRemoved) {
		t.Errorf("%v", err)
	}
	if err := a.etcdChild().observe(&etcdEnds{last: time.Now()}); err != nil {
		t.Errorf("an exit from before: %v", err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	defer a.keepMember(ctx, in, end)()
	// It is started again, and ends again, beside a control plane that is not there yet.
	defer a.keepControlPlane(ctx, in, func(error) {})()
	_, err := enter(ctx, a.progress, PhaseControlPlane, in, a.awaitAPIServer)
	if !errors.Is(err, member.ErrRemoved) || !errors.Is(err, ErrStartAgain) {
		t.Errorf("%v", err)
	}
}

// A member that was removed must not be started again and again while the rest stops, and nobody waits for its
// apiserver.
func TestWhatUsedARemovedMemberStopsSoon(t *testing.T) {
	a := newVM(t).agent()
	stop := a.superviseChildren(t.Context())
	for name, script := range map[string]string{etcdName: "exit 10", replica.APIServer: "sleep 1000"} {
		if err := a.supervisor.Start(supervisor.Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script},
			StopTimeout: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it was removed", func() bool { _, ok := a.supervisor.Exited(etcdName); return ok })
	if err := stop(fmt.Errorf("keep: %w", member.ErrRemoved)); err != nil {
		t.Error(err)
	}
	for _, s := range a.supervisor.Status() {
		if s.State != supervisor.Stopped || s.Name == replica.APIServer &&
			!strings.Contains(s.Reason, "asked to stop within "+orphanTimeout.String()) {
			t.Errorf("%s is %s: %s", s.Name, s.State, s.Reason)
		}
	}
}

// A frozen disk blocks etcd in the kernel, so that it does not end however it is told to. What has clients must not
// wait for that.
func TestAnEtcdThatDoesNotEndHoldsNoOrphanUp(t *testing.T) {
	a := newVM(t).agent()
	stop := a.superviseChildren(t.Context())
	for name, script := range map[string]string{etcdName: "trap '' TERM; while :; do sleep 0.1; done",
		replica.APIServer: "sleep 1000"} {
		if err := a.supervisor.Start(supervisor.Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script},
			StopTimeout: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	stopped := make(chan error, 1)
	pid := 0
	eventually(t, "etcd runs", func() bool { s, _ := a.supervisor.StatusOf(etcdName); pid = s.PID; return pid != 0 })
	time.Sleep(100 * time.Millisecond) // until its shell has come to the trap
	go func() { stopped <- stop(member.ErrRemoved) }()
	eventually(t, "the apiserver has ended",
		func() bool { s, _ := a.supervisor.StatusOf(replica.APIServer); return s.State == supervisor.Stopped })
	if s, _ := a.supervisor.StatusOf(etcdName); s.State != supervisor.Stopping {
		t.Errorf("etcd is %s: this test shows nothing", s.State)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestAMemberThatDoesNotComeUpIsDecidedOnAgain(t *testing.T) {
	t.Parallel()
	a := newVM(t).agent()
	defer a.superviseChildren(t.Context())(nil)
	ends := etcdEnds{last: time.Now()}
	if err := a.supervisor.Start(supervisor.Spec{Name: etcdName, Path: "/bin/sh", Args: []string{"-c", "exit 1"},
		Start: &supervisor.Probe{Check: func(context.Context) error { return errBroken },
			Limit: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < crashLoop; n++ {
		eventually(t, "it has exited", func() bool {
			e, ok := a.supervisor.Exited(etcdName)
			return ok &&
				e.At.After(ends.last)
		})
		if err := a.etcdChild().observe(&ends); err != nil {
			t.Fatalf("after %d ends: %v", n, err)
		}
	}
	if err := a.etcdChild().observe(&ends); err != nil {
		t.Fatalf("an end counts once: %v", err)
	}
	eventually(t, "it has exited again",
		func() bool { e, _ := a.supervisor.Exited(etcdName); return e.At.After(ends.last) })
	if err := a.etcdChild().observe(&ends); err == nil {
		t.Errorf("%d ends without coming up are borne", crashLoop)
	}
}

// Three ends in a row are one too many; those before the member was ready again are of the past.
func TestEndsOfEtcdAreForgottenOnceItIsReady(t *testing.T) {
	a, _ := kept(t)
	if err := a.supervisor.Start(sleeper(etcdName)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready",
		func() bool { s, _ := a.supervisor.StatusOf(etcdName); return s.State == supervisor.Ready })
	ends := etcdEnds{last: time.Now(), failed: crashLoop - 1}
	if err := a.etcdChild().observe(&ends); err != nil || ends.failed != 0 {
		t.Errorf("%v; %+v", err, ends)
	}
}
