package test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// watched is one systemd master with the real kubelet and containerd, and one of its pods.
type watched struct {
	*cluster
	vm string
}

// TestCaseTheKubelet breaks the kubelet and the runtime of a master in every way that supervision has to tell apart.
// The start-up's limit is a minute instead of five; nothing else is other than on a master.
func TestCaseTheKubelet(t *testing.T) {
	c := begin(t, plan{vms: []string{"master-a"}, image: true, more: "kubelet: {startWithin: 1m}"})
	c.awaitWhole(t)
	w := &watched{c, "master-a"}
	await(t, "the Node", func() error { return c.nodeReady(t, w.vm) })
	c.mustKubectl(t, "", "apply", "-f", "pods.yaml")
	c.awaitPods(t)
	for _, scenario := range []struct {
		name string
		do   func(*testing.T, *watched)
	}{
		{"the kubelet is killed: seen within a second, and left to systemd", kubeletKilled},
		{"the kubelet is stopped: its own watchdog ends it", kubeletStopped},
		{"the kubelet is out of descriptors: its own watchdog ends it", kubeletOutOfDescriptors},
		{"the runtime is killed: left to systemd", runtimeKilled},
		{"the runtime hangs: it is restarted, and neither kubelet nor pods are", runtimeHangs},
		{"the health port is blocked: nothing is done", portBlocked},
		{"the network's file is gone: nothing is done", networkGone},
		{"the apiserver is out of reach from the start: nothing is done", apiServerAway},
		{"a start-up is slow: it is left alone", startsSlowly},
		{"a start-up hangs: it is restarted", startHangs},
		{"it crashes again and again: nothing is done", kubeletCrashes},
		{"it is stopped, then masked, on purpose: it is left alone", onPurpose},
		{"systemd has given up: it is started", givenUp},
		{"the bus is started again, and systemd executes itself anew: exits are seen", busGoes},
		{"systemd itself stands still: nothing is lost, and nothing done twice", systemdStands},
		{"SIGKILL does not end it: it is parked, and started when it has gone", unkillable},
	} {
		ok := t.Run(scenario.name, func(t *testing.T) {
			t.Cleanup(func() { c.tell(t); c.tellUnits(t) })
			scenario.do(t, w)
			w.wellAgain(t)
		})
		if !ok {
			t.Fatal("the cases after this one need what it shows")
		}
	}
}

// watch is what the agent says of the two units.
func (w *watched) watch(t *testing.T) (k, runtime kubelet.UnitStatus, records []kubelet.Record) {
	t.Helper()
	s, err := w.status(w.vm)
	w.must(t, err)
	if s.Kubelet == nil || len(s.Kubelet.Units) != 2 {
		t.Fatalf("nothing is watched: %+v", s.Kubelet)
	}
	return s.Kubelet.Units[1], s.Kubelet.Units[0], s.Kubelet.Records
}

// newest is the last record, once there are more than before and its outcome is known.
func (w *watched) newest(t *testing.T, before int, limit time.Duration) (r kubelet.Record) {
	t.Helper()
	awaitWithin(t, limit, "the outcome", func() error {
		k, runtime, records := w.watch(t)
		if done := total(k.Counts) + total(runtime.Counts); done <= before || len(records) == 0 ||
			records[len(records)-1].Outcome == "" {
			return fmt.Errorf("%d records, as before: the kubelet is %s (%s), the runtime %s (%s)", done, k.State,
				k.Reason,
				runtime.State, runtime.Reason)
		}
		r = records[len(records)-1]
		return nil
	})
	t.Logf("%s", r.Text())
	return r
}

// count is how many things happened to the units so far.
func (w *watched) count(t *testing.T) int {
	t.Helper()
	k, runtime, _ := w.watch(t)
	return total(k.Counts) + total(runtime.Counts)
}

func total(c kubelet.Counts) int { return c.Ended + c.Restart + c.Start + c.Park }

// acted is how often the watch did something itself.
func (w *watched) acted(t *testing.T) int {
	t.Helper()
	k, runtime, _ := w.watch(t)
	return total(k.Counts) - k.Ended + total(runtime.Counts) - runtime.Ended
}

// ofTheWatch begins the name of each wait that is about the two units.
var ofTheWatch = []string{"kubelet-", "runtime-", "units-"}

// state waits until the kubelet is in a state, and has that wait and no other of the watch's; empty: none at all.
func (w *watched) state(t *testing.T, want kubeletwatch.State, wait string, limit time.Duration) {
	t.Helper()
	awaitWithin(t, limit, "the kubelet is "+string(want), func() error {
		s, err := w.status(w.vm)
		if err != nil {
			return err
		}
		waits := strings.Join(waitsOfTheWatch(s.Blocked), " ")
		if u := s.Kubelet.Units[1]; u.State != want || waits != wait {
			return fmt.Errorf("it is %s (%s), and there are the waits %q", u.State, u.Reason, waits)
		}
		return nil
	})
}

// waitsOfTheWatch are the names of those waits that are about the two units.
func waitsOfTheWatch(all []replica.Wait) (names []string) {
	for _, b := range all {
		if slices.ContainsFunc(ofTheWatch, func(prefix string) bool { return strings.HasPrefix(b.Name, prefix) }) {
			names = append(names, b.Name)
		}
	}
	return names
}

// quiet fails where the watch acts within a time.
func (w *watched) quiet(t *testing.T, lasting time.Duration) {
	t.Helper()
	before := w.acted(t)
	for end := time.Now().Add(lasting); time.Now().Before(end); time.Sleep(time.Second) {
		if w.acted(t) != before {
			_, _, records := w.watch(t)
			t.Fatalf("it acted: %+v", records)
		}
	}
}

// wellAgain waits until both units run and nothing of them is waited for. One that has crashed again and again, maybe
// in the scenario before, has to run for two minutes.
func (w *watched) wellAgain(t *testing.T) {
	t.Helper()
	w.state(t, kubeletwatch.Running, "", 2*time.Minute+patience)
	await(t, "the runtime runs", func() error {
		if _, r, _ := w.watch(t); r.State != kubeletwatch.Running {
			return fmt.Errorf("it is %s (%s)", r.State, r.Reason)
		}
		return nil
	})
	await(t, "the Node is Ready", func() error { return w.nodeReady(t, w.vm) })
}

// pid is a unit's main process.
func (w *watched) pid(t *testing.T, unit string) string {
	t.Helper()
	return strings.TrimSpace(w.in(t, w.vm, "systemctl show -P MainPID "+unit))
}

// containers are the processes of the pods.
func (w *watched) containers(t *testing.T) string {
	t.Helper()
	return w.in(t, w.vm, "pgrep -x kubectl")
}

// drop puts a drop-in of this boot into the kubelet's unit, and restarts it; an empty one takes it out again.
func (w *watched) drop(t *testing.T, text string) {
	t.Helper()
	const folder = "/run/systemd/system/kubelet.service.d"
	if text == "" {
		w.in(t, w.vm, "rm -f "+folder+"/test.conf; systemctl daemon-reload")
		return
	}
	w.in(t, w.vm, "mkdir -p "+folder+"; printf '%s' '"+text+"' > "+folder+"/test.conf; systemctl daemon-reload")
}

func kubeletKilled(t *testing.T, w *watched) {
	before, acts := w.count(t), w.acted(t)
	killed := time.Now()
	w.in(t, w.vm, "systemctl kill -s KILL --kill-who=main kubelet")
	r := w.newest(t, before, time.Minute)
	if seen := r.At.Sub(killed); r.What != kubelet.Ended || r.Reason != "SIGKILL" || seen > time.Second {
		t.Errorf("seen after %s: %+v", seen, r)
	}
	if w.acted(t) != acts {
		t.Errorf("it acted: %+v", r)
	}
}

func kubeletStopped(t *testing.T, w *watched) {
	before, acts, stopped := w.count(t), w.acted(t), time.Now()
	w.in(t, w.vm, "kill -STOP "+w.pid(t, "kubelet"))
	r := w.newest(t, before, 2*time.Minute)
	if !strings.Contains(r.Reason, "watchdog") || w.acted(t) != acts {
		t.Errorf("it acted, or does not know how it ended: %+v", r)
	}
	w.healthyWithin(t, stopped, 45*time.Second)
}

// healthyWithin fails where all is not well again within a time since the fault. What it takes on a busy machine is
// logged, and twice the goal is the limit.
func (w *watched) healthyWithin(t *testing.T, since time.Time, goal time.Duration) {
	t.Helper()
	took := time.Since(since)
	t.Logf("well again %s after the fault; the goal is %s", took.Round(100*time.Millisecond), goal)
	if took > 2*goal {
		t.Errorf("well again after %s, want %s", took, goal)
	}
}

func kubeletOutOfDescriptors(t *testing.T, w *watched) {
	before, acts := w.count(t), w.acted(t)
	w.in(t, w.vm, "prlimit --nofile=4 --pid "+w.pid(t, "kubelet"))
	if r := w.newest(t, before, 2*time.Minute); w.acted(t) != acts {
		t.Errorf("it acted: %+v", r)
	}
}

func runtimeKilled(t *testing.T, w *watched) {
	before, acts, pods, k := w.count(t), w.acted(t), w.containers(t), w.pid(t, "kubelet")
	w.in(t, w.vm, "systemctl kill -s KILL --kill-who=main containerd")
	r := w.newest(t, before, time.Minute)
	if r.Unit != "containerd.service" || r.What != kubelet.Ended || w.acted(t) != acts {
		t.Errorf("the record is %+v", r)
	}
	if w.containers(t) != pods || w.pid(t, "kubelet") != k {
		t.Error("the pods or the kubelet were started again")
	}
}

func runtimeHangs(t *testing.T, w *watched) {
	before, pods, k := w.count(t), w.containers(t), w.pid(t, "kubelet")
	hung := time.Now()
	w.in(t, w.vm, "kill -STOP "+w.pid(t, "containerd"))
	r := w.newest(t, before, 2*time.Minute)
	w.healthyWithin(t, hung, 45*time.Second)
	if r.Unit != "containerd.service" || r.What != "restart" || r.Cause != kubeletwatch.Hung ||
		!strings.Contains(r.Outcome, "well again") {
		t.Errorf("the record is %+v", r)
	}
	if w.containers(t) != pods || w.pid(t, "kubelet") != k {
		t.Error("the pods or the kubelet were started again")
	}
	if stacks := w.in(t, w.vm,
		"journalctl -u containerd --no-pager | grep -c 'goroutine [0-9]* \\['"); stacks == "0\n" {
		t.Error("the journal has no stacks of containerd")
	}
	await(t, "the Node's event", func() error {
		out, err := w.kubectl(t, "", "get", "events", "--field-selector",
			"involvedObject.kind=Node,reason=UnitRestarted")
		if err == nil && !strings.Contains(out, "restart of containerd.service (hung)") {
			err = fmt.Errorf("there is %q", out)
		}
		return err
	})
	metrics := w.in(t, w.vm, "curl -s http://127.0.0.1:10270/metrics")
	if !strings.Contains(metrics, `quorate_watched_unit_total{unit="containerd.service",what="restart"} 1`) {
		t.Errorf("the metrics lack it: %s", metrics)
	}
}

func portBlocked(t *testing.T, w *watched) {
	w.in(t, w.vm, "nft add table inet blocked && nft add chain inet blocked in '{ type filter hook input "+
		"priority 0; }' && nft add rule inet blocked in tcp dport 10248 drop")
	w.state(t, kubeletwatch.PortBlocked, "kubelet-port-blocked", patience)
	w.quiet(t, 30*time.Second)
	w.in(t, w.vm, "nft delete table inet blocked")
}

func networkGone(t *testing.T, w *watched) {
	w.in(t, w.vm, "mkdir /run/cni && mv /etc/cni/net.d/* /run/cni/")
	w.state(t, kubeletwatch.NoNetwork, "", patience)
	w.quiet(t, 30*time.Second)
	w.in(t, w.vm, "mv /run/cni/* /etc/cni/net.d/ && rmdir /run/cni")
}

// apiServerAway gives the kubelet a port where nobody listens.
func apiServerAway(t *testing.T, w *watched) {
	w.in(t, w.vm, "sed 's|\\(server: https://[^:]*\\).*|\\1:4|' /var/lib/quorate/pki/kubelet.kubeconfig > /run/away")
	w.drop(t, "[Service]\nBindReadOnlyPaths=/run/away:/var/lib/quorate/pki/kubelet.kubeconfig\n")
	before := w.count(t)
	w.in(t, w.vm, "systemctl restart kubelet")
	w.newest(t, before, time.Minute)
	w.quiet(t, 75*time.Second) // the start-up's limit has passed
	w.drop(t, "")
	w.in(t, w.vm, "systemctl restart kubelet")
}

// hangStart makes the next start-up of the kubelet hang after its first pings: it reads the machine's id from a pipe to
// which nobody writes.
func (w *watched) hangStart(t *testing.T) {
	t.Helper()
	w.in(t, w.vm, "test -p /run/pipe || mkfifo /run/pipe")
	w.drop(t, "[Service]\nBindPaths=/run/pipe:/etc/machine-id\n")
	w.in(t, w.vm, "systemctl restart kubelet")
	w.drop(t, "")
}

func startsSlowly(t *testing.T, w *watched) {
	w.hangStart(t)
	w.state(t, kubeletwatch.Starting, "", time.Minute)
	k := w.pid(t, "kubelet")
	w.quiet(t, 40*time.Second)
	// It is read more than once.
	w.in(t, w.vm, "timeout 10 sh -c 'while :; do echo 0123456789abcdef0123456789abcdef > /run/pipe; sleep 0.1; done' "+
		"|| true")
	w.state(t, kubeletwatch.Running, "", patience)
	if w.pid(t, "kubelet") != k {
		t.Error("it was started again")
	}
}

func startHangs(t *testing.T, w *watched) {
	before := w.count(t)
	hung := time.Now()
	w.hangStart(t)
	awaitWithin(t, 3*time.Minute, "restarted", func() error {
		if k, _, _ := w.watch(t); k.Restart == 0 {
			return fmt.Errorf("it is %s (%s)", k.State, k.Reason)
		}
		return nil
	})
	r := w.newest(t, before, 2*time.Minute)
	if r.Cause != kubeletwatch.HungAtStart || !strings.Contains(r.Outcome, "well again") {
		t.Errorf("the record is %+v", r)
	}
	w.healthyWithin(t, hung, 75*time.Second)
	if stacks := w.in(t, w.vm, "journalctl -u kubelet --no-pager | grep -c 'cadvisor.*machine'"); stacks == "0\n" {
		t.Error("the stacks do not show where it hung")
	}
}

func kubeletCrashes(t *testing.T, w *watched) {
	w.drop(t, "[Service]\nExecStart=\nExecStart=/usr/local/bin/kubelet --config=/nowhere\n")
	w.in(t, w.vm, "systemctl restart kubelet")
	w.state(t, kubeletwatch.CrashLoop, "kubelet-crash-loop", patience)
	w.quiet(t, 20*time.Second)
	w.drop(t, "")
	w.in(t, w.vm, "systemctl restart kubelet")
	w.state(t, kubeletwatch.Running, "", 3*time.Minute) // it has to run for two
}

func onPurpose(t *testing.T, w *watched) {
	w.in(t, w.vm, "systemctl stop kubelet")
	w.state(t, kubeletwatch.Stopped, "", time.Minute)
	w.quiet(t, 20*time.Second)
	w.in(t, w.vm, "systemctl mask --runtime kubelet")
	w.state(t, kubeletwatch.Masked, "", time.Minute)
	w.quiet(t, 20*time.Second)
	w.in(t, w.vm, "systemctl unmask --runtime kubelet && systemctl start kubelet")
}

func givenUp(t *testing.T, w *watched) {
	before := w.count(t)
	w.drop(t, "[Unit]\nStartLimitIntervalSec=60\nStartLimitBurst=2\n[Service]\nRestartSec=1s\n")
	w.in(t, w.vm, "systemctl restart kubelet; for i in 1 2 3; do "+
		"systemctl kill -s KILL --kill-who=main kubelet || true; sleep 3; done")
	w.drop(t, "")
	awaitWithin(t, 2*time.Minute, "started", func() error {
		if k, _, _ := w.watch(t); k.Start == 0 {
			return fmt.Errorf("it is %s (%s)", k.State, k.Reason)
		}
		return nil
	})
	w.newest(t, before, 2*time.Minute)
}

func busGoes(t *testing.T, w *watched) {
	for _, how := range []string{"systemctl restart dbus", "systemctl daemon-reexec", "systemctl daemon-reload"} {
		w.in(t, w.vm, how)
		time.Sleep(7 * time.Second) // one period
		before, killed := w.count(t), time.Now()
		w.in(t, w.vm, "kill -9 "+w.pid(t, "kubelet"))
		r := w.newest(t, before, time.Minute)
		if seen := r.At.Sub(killed); r.What != kubelet.Ended || seen > 2*time.Second {
			t.Errorf("after %s an exit was seen after %s: %+v", how, seen, r)
		}
		w.wellAgain(t)
	}
}

// systemdStands stops the VM's process 1 for longer than the agent's watchdog lets the agent be silent, and ends the
// kubelet meanwhile. What systemd has not heard in that time, the agent's pings among it, it hears before it acts.
func systemdStands(t *testing.T, w *watched) {
	if name := w.in(t, w.vm, "cat /proc/1/comm"); name != "systemd\n" {
		t.Fatalf("process 1 is %q", name)
	}
	before, kubeletWas, agentWas := w.acted(t), w.pid(t, "kubelet"), w.processes(w.vm)["agent"]
	pid1, err := os.FindProcess(w.cluster.vm(w.vm).InitPID)
	w.must(t, err)
	t.Cleanup(func() { _ = pid1.Signal(unix.SIGCONT) }) // also where the test fails
	w.must(t, pid1.Signal(unix.SIGSTOP))
	w.in(t, w.vm, "kill -9 "+kubeletWas)
	time.Sleep(still)
	if _, err := w.status(w.vm); err != nil {
		t.Errorf("the agent does not answer while systemd stands still: %v", err)
	}
	w.must(t, pid1.Signal(unix.SIGCONT))
	w.wellAgain(t)
	if now := w.pid(t, "kubelet"); now == kubeletWas || w.in(t, w.vm, "pgrep -c -x kubelet") != "1\n" {
		t.Errorf("the kubelet's process is %s, was %s", now, kubeletWas)
	}
	if now := w.processes(w.vm)["agent"]; !slices.Equal(now, agentWas) {
		t.Errorf("the agents are %v, were %v", now, agentWas)
	}
	if now := w.acted(t); now != before {
		_, _, records := w.watch(t)
		t.Errorf("the watch did %d things itself: %+v", now-before, records)
	}
}

// unkillable holds the kubelet in version 1's freezer, where no signal reaches it.
func unkillable(t *testing.T, w *watched) {
	w.in(t, w.vm, "mkdir -p /sys/fs/cgroup/freezer/held && cd /sys/fs/cgroup/freezer/held && "+
		"echo "+w.pid(t, "kubelet")+" > cgroup.procs && echo FROZEN > freezer.state")
	w.state(t, kubeletwatch.Unkillable, "kubelet-unkillable", 3*time.Minute)
	await(t, "parked", func() error {
		if out := w.in(t, w.vm, "systemctl show -P ActiveState kubelet"); out != "failed\n" && out != "inactive\n" {
			return fmt.Errorf("it is %s", out)
		}
		return nil
	})
	before := w.in(t, w.vm, "systemctl show -P NRestarts kubelet")
	w.quiet(t, 30*time.Second)
	if after := w.in(t, w.vm, "systemctl show -P NRestarts kubelet; pgrep -c -x kubelet"); after != before+"1\n" {
		t.Errorf("a second kubelet was started: %q, was %q", after, before)
	}
	w.in(t, w.vm, "echo THAWED > /sys/fs/cgroup/freezer/held/freezer.state")
	w.state(t, kubeletwatch.Running, "", patience)
}

// TestCaseTheKubeletsSyncLoop hangs the loop that brings pods about, and nothing else: the kubelet speaks to its
// runtime through a relay that is stopped, while the runtime itself answers the watch. The kubelet finds that out after
// five minutes, and systemd ends it. Until then it pings, and nothing is done to it.
func TestCaseTheKubeletsSyncLoop(t *testing.T) {
	c := begin(t, plan{vms: []string{"master-a"}, image: true})
	c.awaitWhole(t)
	w := &watched{c, "master-a"}
	await(t, "the Node", func() error { return c.nodeReady(t, w.vm) })
	w.in(t, w.vm, "systemd-run --quiet --unit=relay --socket-property=ListenStream=/run/relay.sock "+
		"/lib/systemd/systemd-socket-proxyd /run/containerd/containerd.sock && "+
		"printf 'apiVersion: kubelet.config.k8s.io/v1beta1\\nkind: KubeletConfiguration\\n"+
		"containerRuntimeEndpoint: unix:///run/relay.sock\\n' > /etc/kubernetes/kubelet.conf.d/95-relay.conf && "+
		"systemctl restart kubelet")
	w.wellAgain(t)
	before, acts, hung := w.count(t), w.acted(t), time.Now()
	w.in(t, w.vm, "systemctl kill -s STOP --kill-who=main relay")
	awaitWithin(t, 10*time.Minute, "the kubelet was ended", func() error {
		if n := w.count(t); n == before {
			k, _, _ := w.watch(t)
			return fmt.Errorf("after %s it is %s (%s)", time.Since(hung).Round(time.Second), k.State, k.Reason)
		}
		return nil
	})
	t.Logf("ended %s after its loop hung", time.Since(hung).Round(time.Second))
	w.in(t, w.vm, "systemctl kill -s CONT --kill-who=main relay")
	r := w.newest(t, before, 2*time.Minute)
	if r.Unit != "kubelet.service" || r.What != kubelet.Ended || !strings.Contains(r.Reason, "watchdog") ||
		time.Since(hung) < 5*time.Minute || w.acted(t) != acts {
		t.Errorf("it acted, or something else ended it: %+v", r)
	}
	w.wellAgain(t)
}
