package localgce_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/realtest"
)

func TestAnAgentHasTheTimerSlackOfItsUnit(t *testing.T) {
	text, err := os.ReadFile("../../systemd/units/quorate.service")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nTimerSlackNSec=")
	value, _, _ := strings.Cut(after, "\n")
	if d, err := time.ParseDuration(value); err != nil || d != localgce.TimerSlack {
		t.Errorf("the unit has %q (%v), and an agent in a process VM %s", value, err, localgce.TimerSlack)
	}
}

// TestVMsLookLikeGCE is what a program in a VM finds.
func TestVMsLookLikeGCE(t *testing.T) {
	t.Parallel()
	w := start(t, config(t.TempDir(), 1, "a", "b"))
	w.awaitReady("a", "b")

	const meta = "/usr/local/bin/tiny tiny get http://metadata.google.internal/computeMetadata/v1/"
	for script, want := range map[string]string{
		"hostname":                                                                 "a",
		"cat /etc/hostname":                                                        "a",
		meta + "instance/name":                                                     "a",
		meta + "instance/id":                                                       w.vm("a").InstanceID,
		meta + "instance/network-interfaces/0/ip":                                  "10.243.1.11",
		meta + "instance/attributes/quorate-cluster":                               "name: demo",
		"readlink -f /dev/disk/by-id/google-quorate-data":                          "/dev/sdb",
		"grep -c ' /var/lib/quorate ext4 ' /proc/mounts":                           "1",
		"ip -o -4 route get 10.243.1.100 | cut -d' ' -f1-2":                        "local 10.243.1.100",
		"grep COLOUR /run/environment":                                             "COLOUR=blue",
		"grep WATCHDOG /run/environment":                                           "WATCHDOG_USEC=2000000",
		"mkdir /sys/fs/cgroup/sub && rmdir /sys/fs/cgroup/sub && echo own cgroups": "own cgroups",
		"grep -c ' /usr/local/bin/tiny .* ro,' /proc/mounts":                       "1",
		// so that controllers can be handed down
		"cat /sys/fs/cgroup/cgroup.procs | wc -w": "0",
		"cat /proc/1/comm":                        "localgce-init",
	} {
		if got := strings.TrimSpace(w.must("a", script)); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	const slack = "cat /proc/$(head -n 1 /sys/fs/cgroup/system.slice/quorate.service/cgroup.procs)/timerslack_ns"
	if got := strings.TrimSpace(w.must("a", slack)); got != "700000" {
		t.Errorf("the agent's timer slack is %s ns", got)
	}
	if a, b := w.must("a", "cat /proc/sys/kernel/random/boot_id"),
		w.must("b", "cat /proc/sys/kernel/random/boot_id"); a == b || len(a) != 37 {
		t.Errorf("boot ids %q and %q", a, b)
	}
	w.must("a", "echo line > /var/log/quorate/etcd.log; rm -rf /opt; echo mine > /etc/motd")
	if b, err := os.ReadFile(filepath.Join(w.vm("a").LogFolder, "etcd.log")); string(b) != "line\n" {
		t.Errorf("the log folder: %q, %v", b, err)
	}
	log, err := localgce.LogPath(w.conf.State, "a")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(log); !strings.Contains(string(b), "the tiny agent is ready\n") {
		t.Errorf("the agent's log: %q, %v", b, err)
	}
	if !w.reaches("a", "http://10.243.1.1:8080/compute/v1/projects/quorate-local/zones") {
		t.Error("the Compute API does not answer")
	}
}

func TestPowerAndDisks(t *testing.T) {
	t.Parallel()
	w := start(t, config(t.TempDir(), 2, "a"))
	w.awaitReady("a")
	ctx, first := t.Context(), w.vm("a")
	boot := w.must("a", "cat /proc/sys/kernel/random/boot_id")
	w.must("a", "echo kept > /var/lib/quorate/file; touch /root/boot-disk")

	since := time.Now()
	w.do(w.KillVM(ctx, "a"))
	if _, err := w.in("a", "true"); err == nil {
		t.Error("a command runs in a dead vm")
	}
	var state *localgce.StateError
	if err := w.KillVM(ctx, "a"); !errors.As(err, &state) {
		t.Errorf("killed twice: %v", err)
	}
	w.do(w.StartVM(ctx, "a"))
	t.Logf("kill and start took %s", time.Since(since))
	if got := w.must("a", "cat /var/lib/quorate/file"); got != "kept\n" {
		t.Errorf("after kill and start the data disk holds %q", got)
	}
	if w.vm("a").InstanceID != first.InstanceID || w.must("a", "cat /proc/sys/kernel/random/boot_id") == boot {
		t.Error("a power cycle keeps the instance id and changes the boot id")
	}

	w.do(w.RecreateVM(ctx, "a", localgce.Recreation{Address: netip.MustParseAddr("10.243.2.77")}))
	second := w.vm("a")
	if second.InstanceID == first.InstanceID || second.DiskID != first.DiskID || second.Address != "10.243.2.77" {
		t.Errorf("recreated: %+v, was %+v", second, first)
	}
	w.must("a", "test -f /var/lib/quorate/file && ! test -e /root/boot-disk && ip addr show eth0 | grep -q 10.243.2.77")

	w.awaitReady("a")
	w.do(w.StopVM(ctx, "a"))
	w.do(w.StartVM(ctx, "a"))
	w.must("a", "test -f /var/lib/quorate/stopped-in-order")

	w.do(w.RecreateVM(ctx, "a", localgce.Recreation{Wipe: true}))
	if third := w.vm("a"); third.DiskID == first.DiskID {
		t.Error("a wiped disk keeps its id")
	}
	if got := w.must("a", "ls -A /var/lib/quorate"); got != "lost+found\n" {
		t.Errorf("the wiped disk holds %q", got)
	}
	for _, bad := range []string{"10.243.2.1", "10.243.2.100", "10.9.9.9"} {
		if err := w.RecreateVM(ctx, "a", localgce.Recreation{Address: netip.MustParseAddr(bad)}); err == nil {
			t.Errorf("the address %s is accepted", bad)
		}
	}
}

func TestNetworkFaults(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	conf := config(t.TempDir(), 3, "a", "b", "c")
	conf.Agent.Watchdog = 0 // it would bite after the thaw, as on a real machine
	w := start(t, conf)
	w.awaitReady("a", "b", "c")
	ctx := t.Context()
	const meta, api = "http://169.254.169.254/", "http://10.243.3.1:8080/compute/v1/projects/quorate-local/zones"
	url := func(vm string) string { return "https://" + w.address(vm) + "/" }
	expect := func(when string, yes []string, no []string) {
		t.Helper()
		for want, list := range map[bool][]string{true: yes, false: no} {
			for _, pair := range list {
				from, to, _ := strings.Cut(pair, ">")
				target := map[string]string{"meta": meta, "api": api}[to]
				if target == "" {
					target = url(to)
				}
				if want { // a busy machine may need a second try
					w.await(when+": "+pair, func() bool { return w.reaches(from, target) })
				} else if w.reaches(from, target) {
					t.Errorf("%s: %s reaches %s", when, from, to)
				}
			}
		}
	}
	expect("whole", []string{"a>b", "b>a", "a>c", "a>api", "a>meta"}, nil)

	w.do(w.Cut(ctx, "a"))
	expect("a cut off", []string{"a>meta", "b>c"}, []string{"a>b", "b>a", "a>api"})
	if _, err := fetch(url("a"), time.Second); err == nil {
		t.Error("the host reaches a vm that is cut off")
	}
	w.do(w.Partition(ctx, "b", "c", true))
	w.do(w.Heal(ctx, "a"))
	// What b sends to c is dropped: neither direction can make a connection, but both reach others.
	expect("b to c partitioned", []string{"a>b", "a>c", "b>api", "c>api"}, []string{"b>c"})
	w.do(w.Partition(ctx, "a", "c", false))
	w.do(w.Heal(ctx, ""))
	expect("healed", []string{"a>c", "c>a", "b>c"}, nil)

	w.do(w.FreezeVM(ctx, "b"))
	expect("b frozen", []string{"a>c"}, []string{"a>b"})
	w.do(w.ThawVM(ctx, "b"))
	expect("b thawed", []string{"a>b"}, nil)
	if n := w.vm("b").Agent.Restarts; n != 0 {
		t.Errorf("a freeze costs %d restarts", n)
	}

	var absent *localgce.NotFoundError
	if err := w.Cut(ctx, "d"); !errors.As(err, &absent) {
		t.Errorf("an unknown vm is cut off: %v", err)
	}
}

// TestTheDeadAreSilent: Google's network answers for nobody, so calls of a dead VM, and those of a VM that is cut off,
// end by the caller's own patience. Linux neighbours would say "no route to host" after 3 s.
func TestTheDeadAreSilent(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	w := start(t, config(t.TempDir(), 12, "a", "b", "c"))
	a := w.address("a")
	w.do(w.KillVM(t.Context(), "a"))
	w.do(w.Cut(t.Context(), "c"))
	var wait sync.WaitGroup
	for caller, called := range map[string]string{"b": a, "c": w.address("b")} {
		wait.Go(func() {
			if out, err := w.in(caller, "/usr/local/bin/tiny tiny knock "+called); err != nil ||
				!strings.HasSuffix(out, "i/o timeout") {
				t.Errorf("%s calls %s: %s, %v", caller, called, out, err)
			}
		})
	}
	if _, err := net.DialTimeout("tcp", a+":443", 5*time.Second); err == nil ||
		!strings.HasSuffix(err.Error(), "i/o timeout") {
		t.Errorf("the host calls the dead: %v", err)
	}
	wait.Wait()
}

func TestInitKeepsTheAgent(t *testing.T) {
	t.Parallel()
	w := start(t, config(t.TempDir(), 4, "a"))
	w.awaitReady("a")
	agent := w.vm("a").Agent
	if agent.Status != "all is well" || agent.Restarts != 0 {
		t.Errorf("the agent's status: %+v", agent)
	}
	old := strings.TrimSpace(w.must("a", "cat /proc/[0-9]*/comm | grep -c sleep"))
	if old != "1" {
		t.Fatalf("%s children", old)
	}
	// Another process is not heard: NotifyAccess=main.
	w.must("a", "NOTIFY_SOCKET=/run/quorate-notify.sock systemd-notify --status=forged 2>/dev/null || true")

	since := time.Now()
	w.must("a", "mkfifo /run/hold")
	// What a person runs is not the agent's to take along: `quorate restore`, say, which goes on over restarts.
	held, err := w.Command(t.Context(), "a", "sh", "-c", fmt.Sprintf("touch /run/marker; kill -9 %d; cat /run/hold",
		agent.PID))
	w.do(err)
	var said strings.Builder
	held.Stdout = &said
	w.do(held.Start())
	w.await("restarting", func() bool { return w.vm("a").Agent.Restarts == 1 })
	if s := w.vm("a").Agent; s.Status == "forged" || s.LastExit != "signal SIGKILL" {
		t.Errorf("after the kill: %+v", s)
	}
	// One may end between the list and its reading.
	if out := w.must("a", "cat /proc/[0-9]*/comm 2>/dev/null || true"); strings.Contains(out, "sleep") &&
		w.vm("a").Agent.State == "restarting" {
		t.Errorf("processes outlive the agent: %s", out)
	}
	w.awaitReady("a")
	if took := time.Since(since); took < time.Second {
		t.Errorf("started again after %s, want 1 s at least", took)
	}
	if got := strings.TrimSpace(w.must("a", "cat /proc/[0-9]*/comm | grep -c sleep")); got != "1" {
		t.Errorf("%s children after the restart", got)
	}
	w.must("a", "test -f /run/marker; timeout 5 sh -c 'echo lived on > /run/hold'") // the same boot
	if err := held.Wait(); err != nil || said.String() != "lived on\n" {
		t.Errorf("a command that was running when the agent died: %q, %v", said.String(), err)
	}

	w.must("a", "touch /run/no-pings")
	w.await("the watchdog bites", func() bool { return w.vm("a").Agent.Restarts == 2 })
	// Go's runtime turns SIGABRT into stacks on standard error and exit status 2.
	log, err := os.ReadFile(w.vm("a").Log)
	if err != nil || !strings.Contains(string(log), "no watchdog ping for 2s: SIGABRT") ||
		!strings.Contains(string(log), "SIGABRT: abort") {
		t.Errorf("%v; the log lacks the watchdog's bite:\n%s", err, log)
	}
}

func TestInitTriesAgainWhereTheAgentCannotStart(t *testing.T) {
	t.Parallel()
	conf := config(t.TempDir(), 5, "a")
	conf.Agent.Command = []string{"/usr/local/bin/absent"}
	w := start(t, conf)
	w.await("a second try", func() bool { return w.vm("a").Agent.Restarts >= 2 })
	if s := w.vm("a").Agent; !strings.Contains(s.LastExit, "cannot start: no such file") {
		t.Errorf("status: %+v", s)
	}
}

func TestEndpointIsBalancedOverReadyVMs(t *testing.T) {
	t.Parallel()
	w := start(t, config(t.TempDir(), 6, "a", "b", "c"))
	w.awaitReady("a", "b", "c")
	ctx := t.Context()
	backends := func(want string) func() bool {
		return func() bool { s := w.Status(); return strings.Join(s.Backends, " ") == want && !s.FailOpen }
	}
	w.await("all are in", backends("a b c"))
	seen := func(n int) (names map[string]int, failed int) {
		names = map[string]int{}
		for range n {
			name, err := fetch("https://10.243.6.100/", 5*time.Second)
			if err != nil {
				failed++
			}
			names[name]++
		}
		return names, failed
	}
	if names, failed := seen(20); failed > 0 {
		t.Errorf("%d of 20 connections from the host fail: %v", failed, names)
	}
	// A VM that calls the endpoint reaches itself, as on GCE.
	for _, vm := range []string{"a", "b", "c"} {
		if got := w.must(vm, "/usr/local/bin/tiny tiny get https://10.243.6.100/"); got != vm {
			t.Errorf("%s reaches %s at the endpoint", vm, got)
		}
	}
	w.do(w.KillVM(ctx, "a"))
	w.must("b", "touch /run/not-ready")
	since := time.Now()
	w.await("a and b are out", backends("c"))
	t.Logf("a and b were out after %s", time.Since(since))
	if names, failed := seen(20); failed > 0 || names["c"] != 20 {
		t.Errorf("with a off and b not ready: %d failed, %v", failed, names)
	}
	w.must("c", "touch /run/not-ready")
	w.await("none is ready: all that run", func() bool { s := w.Status(); return s.FailOpen && len(s.Backends) == 2 })
	w.must("b", "rm /run/not-ready")
	w.await("b is back", backends("b"))
	if names, failed := seen(5); failed > 0 || names["b"] != 5 {
		t.Errorf("with b ready: %d failed, %v", failed, names)
	}
	// The kernel has lost what the balancer believes it has: the next change makes it anew.
	if out, err := exec.Command("ip", "netns", "exec", fabricOf(w.conf.State), "nft", "delete", "table", "ip",
		"balancer").CombinedOutput(); err != nil {
		t.Fatalf("take the table away: %v: %s", err, out)
	}
	w.must("b", "touch /run/not-ready")
	w.await("none is ready again", func() bool { s := w.Status(); return s.FailOpen && len(s.Backends) == 2 })
	if names, failed := seen(5); failed > 0 {
		t.Errorf("after the kernel had lost the table: %d failed, %v", failed, names)
	}
}

// fabricOf is the name of a project's fabric, as For makes it.
func fabricOf(state string) string {
	sum := sha256.Sum256([]byte(state))
	return "lgce-" + hex.EncodeToString(sum[:3])
}

func TestAttributesAndFaultsReachTheVM(t *testing.T) {
	t.Parallel()
	w := start(t, config(t.TempDir(), 7, "a", "b"))
	const key = "/usr/local/bin/tiny tiny get http://169.254.169.254/computeMetadata/v1/instance/attributes/"
	next := "name: next"
	w.do(w.SetAttribute("", "quorate-cluster", &next))
	w.do(w.SetAttribute("a", "extra", &next))
	if got := w.must("b", key+"quorate-cluster"); got != next {
		t.Errorf("changed for all: %q", got)
	}
	if got := w.must("b", key); got != "quorate-cluster\n" {
		t.Errorf("what was set for a alone is seen by b: %q", got)
	}
	w.do(w.SetAttribute("a", "extra", nil))
	if got := w.must("a", key); got != "quorate-cluster\n" {
		t.Errorf("removed: %q", got)
	}
	w.do(w.SetMaintenance("a", "TERMINATE_ON_HOST_MAINTENANCE"))
	if got := w.must("a", "/usr/local/bin/tiny tiny get "+
		"http://169.254.169.254/computeMetadata/v1/instance/maintenance-event"); got != "TERMINATE_ON_HOST_MAINTENANCE" {
		t.Errorf("maintenance-event: %q", got)
	}
	w.do(w.SetFault(localgce.Metadata, localgce.Fault{Who: "a", Kind: "away"}))
	if _, err := w.in("a", key); err == nil {
		t.Error("the metadata server answers while it is away")
	}
	w.must("b", key)
	w.do(w.KillVM(t.Context(), "a"))
	w.do(w.StartVM(t.Context(), "a"))
	if _, err := w.in("a", key); err == nil {
		t.Error("the metadata server is back with the VM's next boot")
	}
	w.do(w.SetFault(localgce.Metadata, localgce.Fault{Who: "a"}))
	w.must("a", key)
	const list = "/usr/local/bin/tiny tiny get " +
		"http://10.243.7.1:8080/compute/v1/projects/quorate-local/zones/us-central1-a/instances"
	w.do(w.SetFault(localgce.Compute, localgce.Fault{Kind: "forbidden"}))
	if got := w.must("a", list); !strings.Contains(got, `"code":403`) {
		t.Errorf("forbidden: %s", got)
	}
}
