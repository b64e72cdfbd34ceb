package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/local"
)

// leastRoom is what a data disk must have left before a cluster is seeded on it: a log, a database and one snapshot.
const leastRoom = 512 << 20

// preflight says why this VM is not fit to seed: a cluster must not be founded where its control plane cannot run.
func (a *Agent) preflight(ctx context.Context, in identified) error {
	errs := []error{a.programsUsable(ctx, in), room(in.cluster.Etcd.DataDir),
		leavesOfThisCluster(in.files, a.membership.ClusterUID()), a.disk.OneWriter(ctx)}
	if !a.etcdChild().Running() {
		errs = append(errs, portsFree(append(member.Ports(), in.cluster.Endpoint.Port)))
	}
	return errors.Join(errs...)
}

// readPrograms has the kernel read the programs from the disk alongside the rest of the boot: on a new boot disk that
// takes seconds, and no processor. What fails is said by who needs them.
func (a *Agent) readPrograms(in identified) {
	specs, _, _ := controlplane.Components(a.componentsInput(in))
	for _, s := range specs {
		go func() {
			f, err := os.Open(s.Path)
			if err != nil {
				return
			}
			defer f.Close()
			_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_WILLNEED)
		}()
	}
}

// askPrograms asks the programs for their versions while the member waits to be a voter. Earlier their processes would
// take the processors that certificates and joining need: each takes 0.1 s of one.
func (a *Agent) askPrograms(ctx context.Context, in identified) {
	specs, _, _ := controlplane.Components(a.componentsInput(in))
	for _, s := range specs {
		a.programs.ask(ctx, s)
	}
}

// programsUsable names every program that the control plane could not be started with.
func (a *Agent) programsUsable(ctx context.Context, in identified) error {
	specs, _, err := controlplane.Components(a.componentsInput(in))
	return errors.Join(append(a.programs.check(ctx, specs), err)...)
}

func room(dir string) error {
	free, _, err := local.Room(dir)
	if err != nil {
		return err
	}
	if free < leastRoom {
		return fmt.Errorf("the disk of %s has %d MiB left; at least %d MiB are needed", dir, free>>20, leastRoom>>20)
	}
	return nil
}

// leavesOfThisCluster refuses to found a cluster on a disk with another's certificates: its own could not be put there.
func leavesOfThisCluster(files certs.Files, uid string) error {
	b, err := os.ReadFile(files.Binding())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var bound struct {
		ClusterUID string `json:"clusterUID"`
	}
	if err == nil {
		err = json.Unmarshal(b, &bound)
	}
	if err != nil {
		return fmt.Errorf("read whose certificates %s holds: %w", files.Dir, err)
	}
	if bound.ClusterUID != uid {
		return fmt.Errorf("%s holds the certificates of the cluster with uid %s, and this is %s; use an empty data "+
			"disk, or move that folder away",
			files.Dir, bound.ClusterUID, uid)
	}
	return nil
}

// portsFree names every port that somebody else listens on.
func portsFree(ports []int) error {
	var errs []error
	for _, port := range ports {
		if err := portFree(port); err != nil {
			errs = append(errs, fmt.Errorf("port %d is in use by another program: %w", port, err))
		}
	}
	return errors.Join(errs...)
}

// portFree takes a port and gives it back, without listening on it for a moment: a replica that boots at the same time
// asks this very port whether somebody is there, and must not get yes for an answer.
func portFree(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// As a server does: connections that are closing are no obstacle, one that listens is.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrInet4{Port: port})
}
