package supervisor

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The fault cases here are those that need real processes. Each is run in process groups and, where this machine lets
// root make a cgroup2 folder, in cgroups.

// inGroups runs the test in both kinds of groups.
func inGroups(t *testing.T, test func(t *testing.T, cfg Config)) {
	t.Run("process group", func(t *testing.T) {
		t.Parallel()
		test(t, Config{})
	})
	t.Run("cgroup", func(t *testing.T) {
		t.Parallel()
		test(t, Config{Cgroup: testCgroup(t)})
	})
}

// testCgroup makes a cgroup2 folder for one test, or skips the test.
func testCgroup(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a cgroup here")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if before, after, _ := strings.Cut(line, " - "); strings.HasPrefix(after, "cgroup2 ") {
			dir, err := os.MkdirTemp(strings.Fields(before)[4], "quorate-test-")
			if err != nil {
				t.Skipf("a cgroup cannot be made here: %v", err)
			}
			t.Cleanup(func() { endCgroup(t, dir) })
			return dir
		}
	}
	t.Skip("no cgroup2 is mounted")
	return ""
}

// endCgroup fails the test if anything is left in the cgroup.
func endCgroup(t *testing.T, dir string) {
	if g := (&cgroup{dir: dir}); g.alive() {
		t.Errorf("the test left processes behind: %s", g.pids())
		_ = g.kill()
	}
	eventually(t, "the cgroup is empty", func() bool { removeCgroup(dir); _, err := os.Stat(dir); return err != nil })
}

func TestAKilledProcessIsBackWithinASecond(t *testing.T) { // fault case 1
	t.Parallel()
	inGroups(t, func(t *testing.T, cfg Config) {
		file := filepath.Join(t.TempDir(), "notes")
		s := begin(t, cfg)
		start(t, s, childSpec(t, "it", "polite", file, "it"))
		ready(t, s, "it")
		former := pidOf(t, s, "it")
		begun := time.Now()
		if err := syscall.Kill(former, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		st := await(t, s, "it", "a second run", func(st Status) bool { return st.Restarts == 1 && st.State == Ready })
		// 1 s in the tests with a clock of their own; this machine may be busy
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("back after %s", took)
		}
		if st.PID == former || st.PID == 0 {
			t.Errorf("pid %d after %d", st.PID, former)
		}
		if exit, _ := s.Exited("it"); exit.Signal != "SIGKILL" || exit.Code != -1 || exit.Asked {
			t.Errorf("exit %+v", exit)
		}
	})
}

func TestAnExitWithCodeZeroIsARestartToo(t *testing.T) { // fault case 2
	t.Parallel()
	s := begin(t, Config{})
	start(t, s, childSpec(t, "it", "exit", "0", "all done"))
	await(t, s, "it", "a restart", func(st Status) bool { return st.Restarts >= 1 })
	exit, ok := s.Exited("it")
	if !ok || exit.Code != 0 || exit.Tail != "all done\n" {
		t.Errorf("exit %+v", exit)
	}
}

func TestWhatCannotBeLaunchedBacksOffWithItsCause(t *testing.T) { // fault case 3
	t.Parallel()
	busy := filepath.Join(t.TempDir(), "busy")
	if err := os.WriteFile(busy, []byte("#!/bin/true\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(busy, os.O_WRONLY, 0) // a program that is being written: ETXTBSY
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
	inGroups(t, func(t *testing.T, cfg Config) {
		s := begin(t, cfg)
		start(t, s, Spec{Name: "missing", Path: "/no/such/program"}, Spec{Name: "busy", Path: busy},
			childSpec(t, "bad-flag", "exit", "2", "flag provided but not defined: -x"))
		for name, cause := range map[string]string{
			"missing":  "cannot be started: fork/exec /no/such/program: no such file or directory",
			"busy":     "text file busy",
			"bad-flag": "exited with code 2: flag provided but not defined: -x",
		} {
			st := await(t, s, name, "back-off", func(st Status) bool { return st.State == Backoff })
			if !strings.Contains(st.Reason, cause) || !strings.Contains(st.Reason, "next start in") || st.PID != 0 {
				t.Errorf("%s: %+v, want %q", name, st, cause)
			}
		}
		if cfg.Cgroup != "" {
			if left, _ := filepath.Glob(filepath.Join(cfg.Cgroup, "*", "cgroup.kill")); len(left) > 0 {
				t.Errorf("cgroups of processes that never ran: %v", left)
			}
		}
	})
}

func TestSIGTERMIsSentOnceAndFollowedByKillAtTheDeadline(t *testing.T) { // fault case 4
	t.Parallel()
	inGroups(t, func(t *testing.T, cfg Config) {
		file := filepath.Join(t.TempDir(), "notes")
		s := begin(t, cfg)
		deaf := childSpec(t, "deaf", "deaf", file, "deaf")
		deaf.StopTimeout = 300 * time.Millisecond
		start(t, s, deaf, childSpec(t, "polite", "polite", file, "polite"))
		eventually(t, "both have noted their start", func() bool { return len(notes(t, file)) == 2 })
		begun := time.Now()
		stop(t, s, "deaf")
		if took := time.Since(begun); took < deaf.StopTimeout {
			t.Errorf("killed after %s, before its time of %s", took, deaf.StopTimeout)
		}
		stop(t, s, "polite")
		stop(t, s, "polite") // again: nothing happens
		got := notes(t, file)[2:]
		if want := []string{"deaf_term", "polite_term"}; !slices.Equal(got, want) {
			t.Errorf("notes %v, want %v", got, want)
		}
		if exit, _ := s.Exited("deaf"); exit.Signal != "SIGKILL" || !exit.Asked {
			t.Errorf("exit %+v", exit)
		}
		if st := status(t, s, "deaf"); !strings.Contains(st.Reason, "killed because it had not ended after 300ms") {
			t.Errorf("%+v", st)
		}
		if exit, _ := s.Exited("polite"); exit.Code != 0 || !exit.Asked {
			t.Errorf("exit %+v", exit)
		}
	})
}

func TestAStoppedProcessIsFoundByItsProbeAndKilled(t *testing.T) { // fault case 5
	t.Parallel()
	inGroups(t, func(t *testing.T, cfg Config) {
		file := filepath.Join(t.TempDir(), "notes")
		s := begin(t, cfg)
		spec := childSpec(t, "it", "deaf", file, "it")
		spec.StopTimeout = 200 * time.Millisecond
		// The check sees what one over the network would: no answer from a stopped process.
		spec.Live = &Probe{Period: 20 * time.Millisecond,
			Check: stoppedCheck(func() int { st, _ := s.board.get("it"); return st.PID })}
		start(t, s, spec)
		eventually(t, "it is deaf", func() bool { return len(notes(t, file)) == 1 })
		pid := pidOf(t, s, "it")
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		await(t, s, "it", "a second run", func(st Status) bool { return st.Restarts == 1 && st.State == Ready })
		if lives(pid) {
			t.Error("the stopped process is still there")
		}
		if exit, _ := s.Exited("it"); !exit.Asked || exit.Signal != "SIGKILL" {
			t.Errorf("exit %+v", exit)
		}
	})
}

func TestAStoppedProcessThatIsAskedToStopCanEndInOrder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes")
	s := begin(t, Config{})
	start(t, s, childSpec(t, "it", "polite", file, "it"))
	eventually(t, "it runs", func() bool { return len(notes(t, file)) == 1 })
	if err := syscall.Kill(pidOf(t, s, "it"), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stop(t, s, "it")
	if exit, _ := s.Exited("it"); exit.Code != 0 || exit.Signal != "" {
		t.Errorf("exit %+v", exit)
	}
}

func TestAGrandchildIsKilledAndHoldsNothingUp(t *testing.T) { // fault case 6
	t.Parallel()
	for _, c := range []struct{ name, mode, ending string }{
		{"at a stop", "same", "stop"},
		{"after a crash", "same", "crash"},
		{"in a session of its own", "setsid", "stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inGroups(t, func(t *testing.T, cfg Config) {
				file := filepath.Join(t.TempDir(), "notes")
				s := begin(t, cfg)
				start(t, s, childSpec(t, "it", "parent", file, c.mode))
				eventually(t, "the grandchild runs", func() bool {
					return len(notes(t, file)) == 1 &&
						len(notes(t, file+".pid")) == 1
				})
				grandchild, _ := strconv.Atoi(notes(t, file+".pid")[0])
				if c.ending == "crash" {
					if err := syscall.Kill(pidOf(t, s, "it"), syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
					await(t, s, "it", "its end", func(st Status) bool { return st.State == Backoff })
				}
				stop(t, s, "it") // does not return if it waits for the end of the output
				escaped := c.mode == "setsid" && cfg.Cgroup == ""
				if lives(grandchild) != escaped {
					t.Errorf("the grandchild lives: %t, want %t", !escaped, escaped)
				}
				if escaped { // what only cgroups can prevent, as the package says
					_ = syscall.Kill(grandchild, syscall.SIGKILL)
				}
			})
		})
	}
}

func TestOrderOfRealProcesses(t *testing.T) { // fault case 10
	t.Parallel()
	inGroups(t, func(t *testing.T, cfg Config) {
		file := filepath.Join(t.TempDir(), "notes")
		s, end := beginUntil(t, cfg)
		names := []string{"etcd", "apiserver", "scheduler"}
		for i, name := range names {
			spec := childSpec(t, name, "polite", file, name)
			spec.After = names[max(0, i-1):i]
			spec.Ready = &Probe{Period: 10 * time.Millisecond, Check: notedCheck(file, name+" start")}
			start(t, s, spec)
		}
		ready(t, s, names...)
		end()
		want := []string{
			"etcd_start", "apiserver_start", "scheduler_start",
			"scheduler_term", "apiserver_term", "etcd_term",
		}
		if got := notes(t, file); !slices.Equal(got, want) {
			t.Errorf("order %v, want %v", got, want)
		}
		for _, st := range s.Status() {
			if st.State != Stopped || st.PID != 0 {
				t.Errorf("after Run: %+v", st)
			}
		}
	})
}

func TestAServerThatAcceptsAndDoesNotAnswerIsRestartedAfterTheThreshold(t *testing.T) { // fault case 18
	t.Parallel()
	file := filepath.Join(t.TempDir(), "address")
	s := begin(t, Config{})
	spec := childSpec(t, "it", "hang", file)
	address := func() string {
		data, _ := os.ReadFile(file)
		lines := strings.Fields(string(data))
		return "http://" + append(lines, "unknown")[max(0, len(lines)-1)]
	}
	spec.Start = &Probe{Period: 10 * time.Millisecond, Limit: patience, Check: notedCheck(file, "127.0.0.1")}
	var asks times
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}}
	defer client.CloseIdleConnections()
	spec.Live = &Probe{Period: 50 * time.Millisecond, Timeout: 100 * time.Millisecond, Limit: 300 * time.Millisecond,
		Check: asks.of(getFrom(client, address))}
	start(t, s, spec)
	st := await(t, s, "it", "an end", func(st Status) bool { return st.State == Stopping || st.State == Backoff })
	if want := ": get " + address() + ": no answer in 100ms"; !strings.HasPrefix(st.Reason, "not alive for ") ||
		!strings.Contains(st.Reason, want) {
		t.Errorf("reason %q, want %q", st.Reason, want)
	}
	stop(t, s, "it")
	if asked := asks.list(); asked[len(asked)-1].Sub(asked[0]) < spec.Live.Limit {
		t.Errorf("given up %s after the first question that hung, want %s", asked[len(asked)-1].Sub(asked[0]),
			spec.Live.Limit)
	}
}

func TestChildrenDoNotSeeWhatIsMeantForTheSupervisor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "env")
	s := begin(t, Config{Env: []string{
		"NOTIFY_SOCKET=/run/systemd/notify", "WATCHDOG_USEC=1", "WATCHDOG_PID=1", "LISTEN_FDS=1", "LISTEN_PID=1",
		"HTTP_PROXY=http://192.0.2.1", "https_proxy=http://192.0.2.1", "ALL_PROXY=x", "no_proxy=y",
		"HOME=/root", "A=1",
	}})
	spec := childSpec(t, "it", "env", file)
	spec.Env = append(spec.Env, "A=2", "HTTPS_PROXY=http://192.0.2.2")
	start(t, s, spec)
	eventually(t, "the environment is noted", func() bool { return len(notes(t, file)) >= 4 })
	got := notes(t, file)
	slices.Sort(got)
	if want := []string{"A=2", "HOME=/root", "HTTPS_PROXY=http://192.0.2.2", childMark}; !slices.Equal(got, want) {
		t.Errorf("environment %v, want %v", got, want)
	}
}

func TestNothingStartsBesideAFormerRun(t *testing.T) {
	t.Parallel()
	dir := testCgroup(t)
	file := filepath.Join(t.TempDir(), "notes")
	// A supervisor that died has left its child behind: started here by hand, in the place of the process.
	g, err := openCgroup(filepath.Join(dir, "it"))
	if err != nil {
		t.Fatal(err)
	}
	spec := childSpec(t, "it", "deaf", file, "former")
	former := exec.Command(spec.Path, spec.Args...)
	former.Env, former.SysProcAttr = spec.Env, &syscall.SysProcAttr{}
	g.join(former.SysProcAttr)
	if err := former.Start(); err != nil {
		t.Fatal(err)
	}
	g.closeFD()
	eventually(t, "the former runs", func() bool { return len(notes(t, file)) == 1 })
	s := begin(t, Config{Cgroup: dir})
	start(t, s, childSpec(t, "it", "polite", file, "later"))
	ready(t, s, "it")
	if lives(former.Process.Pid) {
		t.Error("the former run lives next to the later one")
	}
	_ = former.Wait() // killed
	if st := status(t, s, "it"); !lives(st.PID) {
		t.Errorf("%+v is not there", st)
	}
}
