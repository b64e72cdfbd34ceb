package etcdtest

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// Replicas is how many addresses a network of its own has.
const Replicas = 5

// Address is that of the i-th replica in a network of its own.
func Address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 251, 127, byte(10 + i)}) }

// networkEnv tells a test's program that it is in the network of its own.
const networkEnv = "QUORATE_TEST_RING"

// InOwnNetwork runs the test again in a network namespace with the replicas' addresses, and reports whether this is
// already that run. Members of other tests, and of others on this machine, have the same ports. Where this machine does
// not allow that, a user's test is skipped, and root's fails.
func InOwnNetwork(t *testing.T) bool {
	t.Helper()
	t.Parallel()
	if os.Getenv(networkEnv) != "" {
		for _, args := range network() {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				t.Fatalf("ip %v: %v: %s", args, err, out)
			}
		}
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), networkEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM) && os.Geteuid() == 0: // root, too, would else miss that nothing was tested
		t.Fatal("root may not make a network namespace here: give it CAP_SYS_ADMIN, or test as another user")
	case errors.Is(err, syscall.EPERM):
		t.Skip("a network of its own is not allowed here")
	}
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
	return false
}

func network() [][]string {
	out := [][]string{{"link", "set", "lo", "up"}}
	for i := range Replicas {
		out = append(out, []string{"address", "add", Address(i).String() + "/32", "dev", "lo"})
	}
	return out
}

// ownLoopbackEnv tells a package's test program that it has a network of its own.
const ownLoopbackEnv = "QUORATE_TEST_LOOPBACK"

// Main is the TestMain of a package whose members listen on loopback: it runs all of its tests in a network namespace,
// because other packages' tests, which run at the same time, have members with the same ports. Where this machine does
// not allow that, they run as they are.
func Main(m *testing.M) {
	if os.Getenv(ownLoopbackEnv) != "" || os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	cmd := exec.Command("sh", append([]string{"-c", `ip link set lo up && exec "$0" "$@"`, os.Args[0]}, os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), ownLoopbackEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the death signal is of the thread that starts the child
	err := cmd.Run()
	if cmd.ProcessState == nil {
		os.Exit(m.Run())
	}
	if err != nil {
		os.Exit(max(1, cmd.ProcessState.ExitCode()))
	}
	os.Exit(0)
}
