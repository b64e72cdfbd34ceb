package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv("BE_PAUSE") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// orphan leaves the first process of a PID namespace with a child that is not its own and that ends at once.
const orphan = `(sleep 0.3 &); exec "$0"`

// children are the processes whose parent is pid, also those that have ended and were not reaped.
func children(t *testing.T, pid string) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/task/%s/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func TestTheFirstProcessOfAPodReapsOrphansAndEndsWhenTold(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a PID namespace")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--pid", "--fork", "--kill-child", "sh", "-c", orphan, self)
	cmd.Env = append(os.Environ(), "BE_PAUSE=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	var pause string
	await(t, "the orphan is there", func() bool {
		first := children(t, fmt.Sprint(cmd.Process.Pid))
		if len(first) != 1 {
			return false
		}
		pause = first[0]
		name, _ := os.Readlink("/proc/" + pause + "/exe")
		return name == self && len(children(t, pause)) == 1
	})
	await(t, "the orphan is reaped", func() bool { return len(children(t, pause)) == 0 })

	var pid int
	if _, err := fmt.Sscan(pause, &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("told to end: %v", err)
	}
}
