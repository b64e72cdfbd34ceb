// Package realtest is what tests with real programs, or with a kernel's network of their own, share.
package realtest

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// insideVariable tells a test that it runs in namespaces of its own.
const insideVariable = "QUORATE_TEST_INSIDE_NAMESPACES"

// Inside runs the calling test again, as a process in a network and pid namespace of its own, and there what is inside,
// as a subtest of that name. The ports are those of production, whatever else this machine runs, and no process
// outlives the test. Where this machine gives no namespaces the test is skipped.
func Inside(t *testing.T, inside func(*testing.T)) {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		t.Run("inside", inside)
		return
	}
	runtime.LockOSThread() // Pdeathsig is the thread's
	defer runtime.UnlockOSThread()
	_, part, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$/"+part, "-test.v")
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil {
		t.Skipf("this machine gives the test no namespaces: %v", err)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// Program is the path of a program that `make` has built from source, for packages right below the repository; the test
// is skipped without it.
func Program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the real %s has not been built: %v", name, err)
	}
	return path
}
