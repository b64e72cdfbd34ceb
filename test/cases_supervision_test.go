package test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/replica"
)

// supervised is one systemd master without a kubelet. Its programs are its own, and its /var/log is a file system that
// a test can fill and freeze: bootLog is where the host sees it.
type supervised struct {
	*cluster
	vm, bootLog string
}

// TestCaseTheAgent breaks the agent of a master, what it runs, and what it writes its logs to, in all ways that the
// table of docs/supervision.md leaves to a real systemd. After each there is one process of each kind, no process of
// before is left of what had to end, and never were there two.
func TestCaseTheAgent(t *testing.T) {
	onlyInCases(t)
	imageTree(t) // or it is skipped
	own := t.TempDir()
	if err := share(programs(t), own, append(append([]string{"quorate"}, kubernetes...), tools...)...); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(own, 0o755); err != nil {
		t.Fatal(err)
	}
	bootLog := smallFileSystem(t)
	c := begin(t, plan{vms: []string{"master-a"}, image: true, noKubelet: true, programs: own,
		binds: []localgce.Bind{{Host: bootLog, Guest: "/var/log"}},
		// The logs go to the journal, as on a master.
		agent: localgce.Agent{Command: []string{"/usr/local/bin/quorate", "agent"}, Watchdog: 30 * time.Second}})
	s := &supervised{c, "master-a", bootLog}
	c.awaitWhole(t)
	// As on a machine with a boot disk; a VM's is memory.
	c.in(t, s.vm, "mkdir -p /run/systemd/journald.conf.d /var/log/journal && printf '[Journal]\\nStorage=persistent\\n' "+
		"> /run/systemd/journald.conf.d/zzz.conf && systemctl restart systemd-journald && journalctl --flush")
	for _, scenario := range []struct {
		name string
		do   func(*testing.T, *supervised)
	}{
		{"a component is killed: it is back at once", componentsKilled},
		{"a component stands still: it is found by its probe", componentStopped},
		{"a program is missing, another one, or refuses its flags: the member stays", programsUnusable},
		{"the journal has each component's lines by its name and their priorities", journalKnowsWho},
		{"the agent's program is exchanged for another, and back", programExchanged},
		{"the agent's program does not start any more: one that does is taken at once", programDoesNotStart},
		{"the agent is killed", agentKilled},
		{"the agent stands still: systemd's watchdog ends it", agentStopped},
		{"the agent stands still before it was ready: systemd ends it, too", agentStoppedBeforeItIsReady},
		{"the agent is killed for want of memory", agentOutOfMemory},
		{"the document changes", documentChanges},
		{"the data disk stands still: what uses it is not started again", dataDiskFrozen},
		{"journald stands still", journalStopped},
		{"the journal's disk is full", journalFull},
		{"the boot disk stands still", bootDiskFrozen},
		{"the agent is killed while the boot disk stands still", agentKilledWhileFrozen},
	} {
		ok := t.Run(scenario.name, func(t *testing.T) {
			t.Cleanup(func() { c.tell(t) })
			end := c.watchDuplicates(t)
			scenario.do(t, s)
			await(t, "whole", c.whole)
			await(t, "one process of each kind", func() error { return c.one(s.vm) })
			end()
		})
		if !ok {
			t.Fatal("the cases after this one need what it shows")
		}
	}
}

// smallFileSystem mounts an ext4 of 64 MiB, and takes it away when nobody uses it any more. It is to be made before the
// cluster that sees it.
func smallFileSystem(t *testing.T) (folder string) {
	t.Helper()
	needs := func(cmd string, args ...string) {
		t.Helper()
		if out, err := exec.Command(cmd, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v: %s", cmd, args, err, out)
		}
	}
	dir := t.TempDir()
	image, folder := filepath.Join(dir, "image"), filepath.Join(dir, "mounted")
	if err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(image, nil, 0o600),
		os.Truncate(image, 64<<20)); err != nil {
		t.Fatal(err)
	}
	needs("mkfs.ext4", "-q", "-m", "0", image)
	needs("mount", "-o", "loop", image, folder)
	t.Cleanup(func() {
		_ = exec.Command("fsfreeze", "-u", folder).Run() // an error where it is not frozen
		needs("umount", folder)
	})
	return folder
}

// pidOf is the one process of a kind.
func (s *supervised) pidOf(t *testing.T, kind string) (pid string) {
	t.Helper()
	await(t, "one "+kind, func() error {
		if pids := s.processes(s.vm)[kind]; len(pids) == 1 {
			pid = pids[0]
			return nil
		} else {
			return fmt.Errorf("there are %v", pids)
		}
	})
	return pid
}

// backAfter kills a process by a signal and returns after how long another one is there.
func (s *supervised) backAfter(t *testing.T, kind, signal string, limit time.Duration) time.Duration {
	t.Helper()
	before := s.pidOf(t, kind)
	begin := time.Now()
	s.in(t, s.vm, "kill -"+signal+" "+before)
	for time.Since(begin) < limit {
		if pids := s.processes(s.vm)[kind]; len(pids) == 1 && pids[0] != before {
			return time.Since(begin)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s is not back %s after %s", kind, limit, signal)
	return 0
}

// stays fails where one of these processes is not the one of before.
func (s *supervised) stays(t *testing.T, before map[string][]string, names ...string) {
	t.Helper()
	now := s.processes(s.vm)
	for _, name := range names {
		if !slices.Equal(now[name], before[name]) {
			t.Errorf("%s is %v, was %v", name, now[name], before[name])
		}
	}
}

// gone fails where a process of before is still there.
func (s *supervised) gone(t *testing.T, before map[string][]string) {
	t.Helper()
	now := s.processes(s.vm)
	for name, pids := range before {
		for _, pid := range pids {
			if slices.Contains(now[name], pid) {
				t.Errorf("%s %s has outlived its agent", name, pid)
			}
		}
	}
}

// anew waits for another agent than one, and returns how long it took.
func (s *supervised) anew(t *testing.T, before map[string][]string, limit time.Duration) {
	t.Helper()
	awaitWithin(t, limit, "another agent", func() error {
		if now := s.processes(s.vm)["agent"]; len(now) != 1 || slices.Equal(now, before["agent"]) {
			return fmt.Errorf("the agent is %v, was %v", now, before["agent"])
		}
		return nil
	})
}

func componentsKilled(t *testing.T, s *supervised) {
	for _, name := range append([]string{"etcd"}, kubernetes...) {
		took := s.backAfter(t, name, "KILL", time.Minute)
		t.Logf("%s runs again %s after SIGKILL", name, took.Round(time.Millisecond))
		if took > 5*time.Second { // the goal is one; a machine under test is busy
			t.Errorf("%s runs again only after %s", name, took)
		}
		await(t, "whole", s.whole)
	}
}

func componentStopped(t *testing.T, s *supervised) {
	before := s.processes(s.vm)
	took := s.backAfter(t, replica.APIServer, "STOP", 2*time.Minute)
	t.Logf("the apiserver runs again %s after SIGSTOP", took.Round(time.Millisecond))
	s.stays(t, before, "agent", "etcd")
}

// unusable are programs that cannot be used, each with the name of the wait and what it says. What another version or a
// refused flag looks like, the script says.
var unusable = []struct{ name, script, wait, says string }{
	{"missing", "", "program-unusable", "no such file"},
	{"of another version", "#!/bin/sh\necho Kubernetes v1.30.1\n", "program-unusable", "1.30.1"},
	{"that refuses its flags", "#!/bin/sh\nif [ \"$1\" = --version ]; then echo Kubernetes v1.36.3; exit; fi\n" +
		"echo 'Error: unknown flag: --made-up' >&2\nexit 1\n", "component-not-ready", "unknown flag: --made-up"},
}

// programsUnusable takes each program away while its component is ended. The agent's own start in the middle finds it
// so, too: then etcd starts all the same.
func programsUnusable(t *testing.T, s *supervised) {
	for _, name := range kubernetes {
		path := filepath.Join(s.cluster.programs, name)
		for _, fault := range unusable {
			before := s.processes(s.vm)
			s.must(t, os.Rename(path, path+".kept"))
			if fault.script != "" {
				s.must(t, os.WriteFile(path, []byte(fault.script), 0o755))
			}
			s.kill(t, s.vm, before[name][0])
			s.says(t, name+" "+fault.name, fault.wait, name, fault.says)
			s.stays(t, before, "agent", "etcd")
			if fault.script == "" {
				s.kill(t, s.vm, before["agent"][0])
				s.anew(t, before, time.Minute)
				s.says(t, "another agent, and "+name+" is missing", fault.wait, name, fault.says)
				await(t, "the member runs", func() error { return s.one(s.vm, "etcd") })
			}
			await(t, "the member is a voter", func() error {
				st, err := s.status(s.vm)
				if err == nil && len(voters(st)) != 1 {
					err = fmt.Errorf("it sees %+v", st.Etcd.Members)
				}
				return err
			})
			if fault.script != "" {
				s.must(t, os.Remove(path))
			}
			s.must(t, os.Rename(path+".kept", path))
			await(t, "whole with the right program", s.whole)
		}
	}
}

// says waits until the status has that wait, with these words.
func (s *supervised) says(t *testing.T, what, wait string, words ...string) {
	t.Helper()
	await(t, what, func() error {
		st, err := s.status(s.vm)
		if err == nil && !names(st, wait, words...) {
			err = fmt.Errorf("no %s with %q: %+v", wait, words, st.Blocked)
		}
		return err
	})
}

// journalKnowsWho reads the journal as an operator does: by a component's name, and by a priority.
func journalKnowsWho(t *testing.T, s *supervised) {
	for _, name := range append([]string{"quorate", "etcd"}, kubernetes...) {
		if out := s.in(t, s.vm, "journalctl -q --no-pager -o cat -n 1 -t "+name); out == "" {
			t.Errorf("nothing of %s", name)
		}
	}
	// The agent's and etcd's own lines, Kubernetes' client of etcd and klog each have a form of their own. A master
	// that has just begun has warnings.
	warning := regexp.MustCompile(`"level":"(warn|WARN)"|^W\d{4} `)
	for _, name := range []string{"etcd", replica.APIServer} {
		out := s.in(t, s.vm, "journalctl -q --no-pager -o cat -p warning..warning -t "+name)
		if out == "" {
			t.Errorf("no warning of %s", name)
		}
		for line := range strings.Lines(out) {
			if !warning.MatchString(line) {
				t.Errorf("a line of %s is called a warning: %s", name, line)
			}
		}
	}
}

// programExchanged puts another program into the place of the one that runs, as an update does. The agent goes on with
// the former until it is started again.
func programExchanged(t *testing.T, s *supervised) {
	path := filepath.Join(s.cluster.programs, "quorate")
	former := path + ".former"
	s.must(t, os.Rename(path, former))
	program, err := os.ReadFile(former)
	s.must(t, err)
	for _, step := range []struct {
		name string
		put  func() error
	}{
		// The kernel does not read what follows the program.
		{"another", func() error { return os.WriteFile(path, append(program, "another"...), 0o755) }},
		{"the former", func() error { return os.Rename(former, path) }},
	} {
		before := s.processes(s.vm)
		s.must(t, step.put())
		s.stays(t, before, append([]string{"agent", "etcd"}, kubernetes...)...)
		s.in(t, s.vm, "systemctl restart quorate")
		s.anew(t, before, time.Minute)
		s.gone(t, before)
		await(t, "whole with "+step.name, s.whole)
		want := strings.Fields(s.in(t, s.vm, "sha256sum /usr/local/bin/quorate"))[0]
		for _, kind := range []string{"agent", "etcd"} {
			if out := s.in(t, s.vm, "sha256sum /proc/"+s.pidOf(t, kind)+"/exe"); !strings.HasPrefix(out, want) {
				t.Errorf("%s: %s runs another program than %s", step.name, kind, want)
			}
		}
	}
}

// programDoesNotStart is an update that goes wrong. Nothing of a control plane runs with it, and systemd does not give
// up: when the former program is put back nobody has to start it.
func programDoesNotStart(t *testing.T, s *supervised) {
	path := filepath.Join(s.cluster.programs, "quorate")
	former := path + ".former"
	s.must(t, os.Rename(path, former))
	s.must(t, os.WriteFile(path, []byte("\x7fELF of no machine"), 0o755))
	before := s.processes(s.vm)
	s.kill(t, s.vm, before["agent"][0])
	restarts := func() (n int) {
		_, err := fmt.Sscan(s.in(t, s.vm, "systemctl show -P NRestarts quorate"), &n)
		s.must(t, err)
		return n
	}
	const tries = 20 // systemd's own limit would be five in ten seconds
	begun := restarts()
	await(t, "systemd tries again and again", func() error {
		if n := restarts() - begun; n < tries {
			return fmt.Errorf("%d times until now", n)
		}
		return nil
	})
	s.gone(t, before)
	s.must(t, os.Rename(former, path))
	s.anew(t, before, time.Minute)
	await(t, "whole", s.whole)
}

func agentKilled(t *testing.T, s *supervised) {
	before := s.processes(s.vm)
	s.kill(t, s.vm, before["agent"][0])
	s.anew(t, before, time.Minute)
	s.gone(t, before)
	if exit := s.vmAgent().LastExit; exit != "signal SIGKILL" {
		t.Errorf("the agent's last exit: %q", exit)
	}
}

// vmAgent is what systemd says of the agent.
func (s *supervised) vmAgent() localgce.AgentStatus { return s.cluster.vm(s.vm).Agent }

func agentStopped(t *testing.T, s *supervised) {
	before, begin := s.processes(s.vm), time.Now()
	s.in(t, s.vm, "kill -STOP "+before["agent"][0])
	s.anew(t, before, 2*time.Minute)
	took := time.Since(begin)
	t.Logf("another agent %s after SIGSTOP; WatchdogSec is 30 s", took.Round(100*time.Millisecond))
	if took < 10*time.Second || took > 60*time.Second {
		t.Errorf("another agent after %s", took)
	}
	s.gone(t, before)
	if exit := s.vmAgent().LastExit; !strings.Contains(exit, "watchdog") {
		t.Errorf("the agent's last exit: %q", exit)
	}
	s.printedStacks(t, before["agent"][0])
	await(t, "whole", s.whole)
}

// printedStacks fails where the agent of that process id has not said where it stood.
func (s *supervised) printedStacks(t *testing.T, pid string) {
	t.Helper()
	out := s.in(t, s.vm, "journalctl -u quorate _PID="+pid+" --no-pager | grep -c 'goroutine [0-9]* ' || true")
	if out == "0\n" {
		t.Error("the journal has no stacks of the agent")
	}
}

// agentStoppedBeforeItIsReady stops an agent that has no apiserver to start, and so has not said that it is ready. What
// it got more time by were its pings.
func agentStoppedBeforeItIsReady(t *testing.T, s *supervised) {
	first, path := s.processes(s.vm), filepath.Join(s.cluster.programs, replica.APIServer)
	s.must(t, os.Rename(path, path+".kept"))
	s.in(t, s.vm, "systemctl restart --no-block quorate")
	s.anew(t, first, time.Minute)
	s.says(t, "there is no apiserver to start", "program-unusable", replica.APIServer)
	if state := s.in(t, s.vm, "systemctl show -P ActiveState quorate"); state != "activating\n" {
		t.Errorf("quorate.service is %s", state)
	}
	before, begin := s.processes(s.vm), time.Now()
	s.in(t, s.vm, "kill -STOP "+before["agent"][0])
	s.anew(t, before, 4*time.Minute)
	t.Logf("another agent %s after SIGSTOP; TimeoutStartSec is 120 s", time.Since(begin).Round(100*time.Millisecond))
	s.gone(t, before)
	s.printedStacks(t, before["agent"][0])
	s.must(t, os.Rename(path+".kept", path))
	await(t, "whole", s.whole)
}

// agentOutOfMemory lets the agent have almost no memory beyond what it has, and asks much of it. The kernel kills it.
func agentOutOfMemory(t *testing.T, s *supervised) {
	const group = "/sys/fs/cgroup/memory/scarce"
	if out := s.in(t, s.vm, "mkdir "+group+" 2>&1 && echo made || true"); out != "made\n" {
		t.Skipf("this machine has no memory controller of version 1: %s", out)
	}
	before := s.processes(s.vm)
	s.in(t, s.vm, "cd "+group+" && echo 262144 > memory.limit_in_bytes && echo "+before["agent"][0]+" > cgroup.procs")
	// What asks ends with the agent.
	s.in(t, s.vm, "for i in $(seq 200); do curl -s -m 5 http://127.0.0.1:10270/metrics >/dev/null & done; wait; true")
	s.anew(t, before, time.Minute)
	if out := s.in(t, s.vm, "grep oom_kill "+group+"/memory.oom_control"); strings.Contains(out, "oom_kill 0\n") {
		t.Errorf("it did not end for want of memory: %s", out)
	}
	s.gone(t, before)
	if exit := s.vmAgent().LastExit; exit != "signal SIGKILL" {
		t.Errorf("the agent's last exit: %q", exit)
	}
	s.in(t, s.vm, "rmdir "+group)
}

// documentChanges changes what counts at once and what counts from the agent's next start.
func documentChanges(t *testing.T, s *supervised) {
	before := s.processes(s.vm)
	if st, err := s.status(s.vm); err != nil || st.Kubelet == nil {
		t.Fatalf("the kubelet is not watched: %v, %+v", err, st.Kubelet)
	}
	text := s.document + "components: {kube-scheduler: {extraArgs: [--v=3]}}\nkubelet: {watch: false}\n"
	s.must(t, s.SetAttribute("", agent.ClusterAttribute, &text))
	await(t, "the kubelet is watched no more, at once", func() error {
		st, err := s.status(s.vm)
		if err == nil && st.Kubelet != nil {
			err = fmt.Errorf("it is watched: %+v", st.Kubelet)
		}
		return err
	})
	pending := func(want string) func() error {
		return func() error {
			st, err := s.status(s.vm)
			if got := fmt.Sprint(st.PendingRestart); err == nil && (want == "" && len(st.PendingRestart) > 0 ||
				!strings.Contains(got, want)) {
				err = fmt.Errorf("pending: %s, want %q", got, want)
			}
			return err
		}
	}
	await(t, "the change is shown as pending", pending("components.kube-scheduler"))
	if st, err := s.status(s.vm); err != nil || len(st.PendingRestart) != 1 {
		t.Errorf("pending: %+v, %v; want the scheduler's alone", st.PendingRestart, err)
	}
	s.stays(t, before, kinds...)
	s.in(t, s.vm, "systemctl restart quorate")
	s.anew(t, before, time.Minute)
	await(t, "nothing is pending", pending(""))
	await(t, "whole", s.whole)
	if args := s.in(t, s.vm, "tr '\\0' ' ' < /proc/"+s.pidOf(t, replica.Scheduler)+"/cmdline"); !strings.Contains(args,
		" --v=3 ") {
		t.Errorf("the scheduler's command line lacks --v=3: %s", args)
	}
	s.must(t, s.SetAttribute("", agent.ClusterAttribute, &s.document))
	await(t, "the change back is shown", pending("components.kube-scheduler"))
	again := s.processes(s.vm)
	s.in(t, s.vm, "systemctl restart quorate")
	s.anew(t, again, time.Minute)
}

// dataDiskFrozen makes etcd slow without end. The apiserver cannot be ready meanwhile, and is left alone all the same.
// What has lost its lease is back soon afterwards.
func dataDiskFrozen(t *testing.T, s *supervised) {
	before := s.processes(s.vm)
	s.must(t, s.FreezeDisk(s.vm, 2*time.Minute))
	await(t, "the apiserver is not ready", func() error {
		st, err := s.status(s.vm)
		if got := component(st, replica.APIServer); err == nil && got != "degraded" {
			err = fmt.Errorf("it is %s", got)
		}
		return err
	})
	time.Sleep(still)
	s.must(t, s.ThawDisk(s.vm))
	thawed := time.Now()
	await(t, "whole", s.whole)
	t.Logf("whole %s after a standstill of more than %s", time.Since(thawed).Round(100*time.Millisecond), still)
	s.stays(t, before, "agent", "etcd", replica.APIServer)
}

// still is how long the journal, or a disk, stands still: longer than the watchdog's 30 s.
const still = 45 * time.Second

// journalStopped stops journald, fills what is on its way to it, and ends a component meanwhile.
func journalStopped(t *testing.T, s *supervised) {
	before := s.processes(s.vm)
	journald := strings.TrimSpace(s.in(t, s.vm, "systemctl show -P MainPID systemd-journald"))
	begin := time.Now()
	s.in(t, s.vm, "kill -STOP "+journald)
	took := s.backAfter(t, replica.Scheduler, "KILL", time.Minute)
	t.Logf("the scheduler runs again after %s while journald stands still", took.Round(time.Millisecond))
	for time.Since(begin) < still {
		if _, err := s.status(s.vm); err != nil {
			t.Errorf("%s after it stood still: %v", time.Since(begin).Round(time.Second), err)
		}
		time.Sleep(time.Second)
	}
	s.stays(t, before, "agent", "etcd", replica.APIServer, replica.ControllerManager)
	s.in(t, s.vm, "kill -CONT "+journald)
}

func journalFull(t *testing.T, s *supervised) {
	before := s.processes(s.vm)
	s.in(t, s.vm, "cat /dev/zero > /var/log/all 2>/dev/null || true")
	if left := strings.TrimSpace(s.in(t, s.vm, "df --output=avail /var/log | tail -n 1")); len(left) > 2 {
		t.Fatalf("the disk has %s KiB left", left)
	}
	s.in(t, s.vm, "seq 20000 | sed 's/^/much to say: /' | systemd-cat")
	for _, name := range []string{replica.Scheduler, replica.APIServer} {
		took := s.backAfter(t, name, "KILL", time.Minute)
		t.Logf("%s runs again after %s on a full disk", name, took.Round(time.Millisecond))
		await(t, "whole on a full disk", s.whole)
	}
	s.stays(t, before, "agent", "etcd")
	s.in(t, s.vm, "rm /var/log/all")
}

// freeze stops all writes to the boot disk's logs until the returned function is called.
func (s *supervised) freeze(t *testing.T) (thaw func()) {
	t.Helper()
	fsfreeze := func(how string) {
		t.Helper()
		if out, err := exec.Command("fsfreeze", how, s.bootLog).CombinedOutput(); err != nil {
			t.Fatalf("fsfreeze %s: %v: %s", how, err, bytes.TrimSpace(out))
		}
	}
	fsfreeze("-f")
	return func() { fsfreeze("-u") }
}

func bootDiskFrozen(t *testing.T, s *supervised) {
	before, restarts := s.processes(s.vm), s.vmAgent().Restarts
	thaw := s.freeze(t)
	time.Sleep(still)
	if state := s.in(t, s.vm, "ps -o stat= -C systemd-journal"); !strings.HasPrefix(state, "D") {
		t.Errorf("journald does not wait for the disk (its state is %q), so this shows nothing", state)
	}
	st, err := s.status(s.vm)
	s.must(t, err)
	t.Logf("after %s: %+v; blocked: %+v", still, st.Components, st.Blocked)
	s.stays(t, before, "agent", "etcd")
	thaw()
	await(t, "whole", s.whole)
	s.stays(t, before, "agent", "etcd")
	if now := s.vmAgent().Restarts; now != restarts {
		t.Errorf("the agent was started again %d times", now-restarts)
	}
}

func agentKilledWhileFrozen(t *testing.T, s *supervised) {
	before := s.processes(s.vm)
	thaw := s.freeze(t)
	time.Sleep(5 * time.Second)
	s.kill(t, s.vm, before["agent"][0])
	time.Sleep(20 * time.Second)
	left := s.processes(s.vm)
	thaw()
	if len(left) != 0 {
		t.Errorf("20 s after the agent was killed there is %v; before it was %v", left, before)
	}
	s.anew(t, before, time.Minute)
	await(t, "whole", s.whole)
	s.gone(t, before)
}
