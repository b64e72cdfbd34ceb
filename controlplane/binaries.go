package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// ErrBinary is in every error of CheckBinary that says that a program cannot be used.
var ErrBinary = errors.New("unusable program")

// KubernetesMinor is the version of Kubernetes whose flags this package writes. A patch release changes none.
const KubernetesMinor = "v1.36"

// versionTimeout is for one line, which takes 0.03 s where the program is in the page cache. On a cold disk it may take
// longer than this: what was read by then stays in the cache, and the next question gets further.
const versionTimeout = 5 * time.Second

// CheckBinary reports a process whose program is missing, cannot be executed, or is a Kubernetes component of another
// minor version than want ("v1.36"). A program that does not answer in time may do so later: that is no ErrBinary.
func CheckBinary(ctx context.Context, s supervisor.Spec, want string) error {
	if err := checkBinary(ctx, s, want); err != nil {
		return fmt.Errorf("check %s: %w", s.Name, err)
	}
	return nil
}

func checkBinary(ctx context.Context, s supervisor.Spec, want string) error {
	info, err := os.Stat(s.Path)
	if err != nil {
		return fmt.Errorf("%w: %w; install it there, or name another file in components.%s.binary", ErrBinary, err,
			s.Name)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%w: %s is not an executable file (%s)", ErrBinary, s.Path, info.Mode())
	}
	if !hasKubernetesVersion(s.Name) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, versionTimeout, fmt.Errorf("no answer within %s", versionTimeout))
	defer cancel()
	out, err := outputBeside(ctx, s.Path, "--version")
	if ctx.Err() != nil {
		return fmt.Errorf("run %s --version: %w", s.Path, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("%w: %s --version: %w", ErrBinary, s.Path, err)
	}
	return checkVersion(s.Path, string(out), want)
}

// beside is the niceness of a question: etcd joins meanwhile, and is to have the processors first.
const beside = 10

// outputBeside runs a program that is in nobody's way, and returns what it prints.
func outputBeside(ctx context.Context, path string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, beside) // it may have ended already
	err := cmd.Wait()
	return out.Bytes(), err
}

func hasKubernetesVersion(component string) bool {
	return component == replica.APIServer || component == replica.Scheduler || component == replica.ControllerManager
}

// checkVersion reads "Kubernetes v1.36.3"; what follows the patch number ("-gke.1") does not matter.
func checkVersion(path, out, want string) error {
	found, ok := strings.CutPrefix(strings.TrimSpace(out), "Kubernetes ")
	if !ok {
		return fmt.Errorf("%w: %s --version says %.80q; allowed: Kubernetes %s.x", ErrBinary, path, out, want)
	}
	if !strings.HasPrefix(found, want+".") {
		return fmt.Errorf("%w: %s is Kubernetes %s; allowed: %s.x", ErrBinary, path, found, want)
	}
	return nil
}
