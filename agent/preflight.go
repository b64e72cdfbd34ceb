package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember"
)

// ErrPreflight is in every error that says what this machine lacks.
var ErrPreflight = errors.New("this machine is not fit to be a master")

// leastRoom is what a data disk must have left before a cluster is seeded on it: a log, a database and one snapshot.
const leastRoom = 512 << 20

// checkBinaries asks the programs for their versions, beside the rest of the boot. The returned function waits for the answer.
func (a *Agent) checkBinaries(ctx context.Context, in identified) func() error {
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		specs, _, cerr := controlplane.Components(controlplane.Input{
			Identity: in.self, Cluster: in.cluster, Files: a.files, LogDir: a.cfg.LogDir, RunDir: a.cfg.RunDir,
		})
		if err = cerr; err == nil {
			err = controlplane.CheckBinaries(ctx, specs, controlplane.KubernetesMinor)
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrPreflight, err)
		}
	}()
	return func() error { <-done; return err }
}

// preflight says why this VM is not fit to seed: a cluster must not be founded where its control plane cannot run.
func (a *Agent) preflight(context.Context) error {
	errs := []error{a.binaries(), a.room()}
	if !(&etcdChild{a.supervisor, a.cfg.Self}).Running() {
		errs = append(errs, a.portsFree())
	}
	return errors.Join(errs...)
}

func (a *Agent) room() error {
	dir := a.cluster.Etcd.DataDir
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("%w: look at the disk of %s: %w", ErrPreflight, dir, err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < leastRoom {
		return fmt.Errorf("%w: the disk of %s has %d MiB left; at least %d MiB are needed", ErrPreflight, dir, free>>20, leastRoom>>20)
	}
	return nil
}

// portsFree names every port that somebody else listens on.
func (a *Agent) portsFree() error {
	var errs []error
	for _, port := range append(etcdmember.Ports(), a.cluster.Endpoint.Port) {
		l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: port %d is in use by another program: %w", ErrPreflight, port, err))
			continue
		}
		l.Close()
	}
	return errors.Join(errs...)
}
