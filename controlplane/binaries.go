package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// ErrBinary is in every error of CheckBinaries that says that a program cannot be used.
var ErrBinary = errors.New("unusable program")

// KubernetesMinor is the version of Kubernetes whose flags this package writes. A patch release changes none.
const KubernetesMinor = "v1.36"

// versionTimeout is for a program that reads 100 MB from a cold disk before it prints one line; warm it takes 0.03 s.
const versionTimeout = 20 * time.Second

// CheckBinaries reports every process whose program is missing, cannot be executed, or is a Kubernetes component of
// another minor version than want ("v1.36"). The programs are asked at the same time, which warms the page cache for their start; a boot
// runs this beside the start of etcd.
func CheckBinaries(ctx context.Context, specs []supervisor.Spec, want string) error {
	errs := make([]error, len(specs))
	var g errgroup.Group
	for i, s := range specs {
		g.Go(func() error {
			if err := checkBinary(ctx, s, want); err != nil {
				errs[i] = fmt.Errorf("check %s: %w", s.Name, err)
			}
			return nil
		})
	}
	g.Wait() // its functions return nil
	return errors.Join(errs...)
}

func checkBinary(ctx context.Context, s supervisor.Spec, want string) error {
	info, err := os.Stat(s.Path)
	if err != nil {
		return fmt.Errorf("%w: %w; install it there, or name another file in components.%s.binary", ErrBinary, err, s.Name)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%w: %s is not an executable file (%s)", ErrBinary, s.Path, info.Mode())
	}
	if !hasKubernetesVersion(s.Name) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return fmt.Errorf("run %s --version: %w", s.Path, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("%w: %s --version: %w", ErrBinary, s.Path, err)
	}
	return checkVersion(s.Path, string(out), want)
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
