package supervisor

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests here take this program's files away. They do not run in parallel with others.

// withoutFiles makes each opening of a file fail with EMFILE while it does something.
func withoutFiles(t *testing.T, do func()) {
	t.Helper()
	var all syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &all); err != nil {
		t.Fatal(err)
	}
	none := all
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	do()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &all); err != nil {
		t.Fatal(err)
	}
}

// The kill of a cgroup is a write to a file, which may fail for a moment.
func TestAKillThatFailedForWantOfAFileIsTriedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	s := begin(t, Config{Cgroup: testCgroup(t)})
	deaf := childSpec(t, "deaf", "deaf", file, "deaf")
	deaf.StopTimeout = 100 * time.Millisecond
	start(t, s, deaf)
	eventually(t, "it runs", func() bool { return len(notes(t, file)) == 1 })
	pid := pidOf(t, s, "deaf")
	done := make(chan error, 1)
	withoutFiles(t, func() {
		go func() { done <- s.Stop(within(t), "deaf") }()
		time.Sleep(600 * time.Millisecond)
	})
	if err := <-done; err != nil || lives(pid) {
		t.Errorf("stopped: %v; it lives: %t", err, lives(pid))
	}
}

func TestWhatAProcessLeavesBehindIsKilledHoweverLate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	s := begin(t, Config{Cgroup: testCgroup(t)})
	start(t, s, childSpec(t, "it", "parent", file, "same"))
	eventually(t, "the grandchild runs", func() bool {
		return len(notes(t, file)) == 1 &&
			len(notes(t, file+".pid")) == 1
	})
	grandchild, _ := strconv.Atoi(notes(t, file+".pid")[0])
	pid := pidOf(t, s, "it")
	withoutFiles(t, func() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		time.Sleep(300 * time.Millisecond)
		if syscall.Kill(grandchild, 0) != nil { // lives would need a file
			t.Error("the grandchild was killed without a file, so this test shows nothing")
		}
	})
	await(t, s, "it", "another run", func(st Status) bool { return st.Restarts == 1 && st.State == Ready })
	if lives(grandchild) {
		t.Error("another run was started while something of the former one still ran")
	}
}

func TestALaunchThatFailedForWantOfAFileIsTriedAgain(t *testing.T) {
	for name, cfg := range map[string]func() Config{
		"process group": func() Config { return Config{} },
		"cgroup":        func() Config { return Config{Cgroup: testCgroup(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, cfg())
			spec := childSpec(t, "it", "polite", filepath.Join(t.TempDir(), "notes"), "it")
			withoutFiles(t, func() {
				start(t, s, spec)
				st := await(t, s, "it", "back-off", func(st Status) bool { return st.State == Backoff })
				if !strings.Contains(st.Reason, "too many open files") {
					t.Errorf("%+v", st)
				}
			})
			ready(t, s, "it")
		})
	}
}
