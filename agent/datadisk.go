package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
)

// dataDisk is what is known of this VM's data disk. The agent's lock guards it.
type dataDisk struct {
	exists bool
	id     string // the Compute API's; empty: not known yet
	// shared is why another VM may write to it, too; empty: none may, or that is not known.
	shared string
}

// The wait for a data disk that others may write to: a file system that two machines have mounted is destroyed.
const (
	dataDiskShared     = "data-disk-shared"
	dataDiskSharedNext = "Give the disk one writer: detach it from every other VM, or recreate this VM with a disk of " +
		"access mode READ_WRITE_SINGLE. If both VMs had it mounted, take an empty disk. The agent asks again every " +
		"10 s."
)

// judgeWriters says why another than this VM may write to its data disk; empty: none may.
func judgeWriters(d replica.Disk, self replica.Place) string {
	if d.Mode != "" && d.Mode != replica.SingleWriter {
		return fmt.Sprintf("data disk %s has access mode %s: more VMs than this one can attach it", d.ID, d.Mode)
	}
	n := slices.IndexFunc(d.Users, func(p replica.Place) bool { return p != self })
	if n < 0 {
		return ""
	}
	return fmt.Sprintf("data disk %s is attached to %s, too", d.ID, d.Users[n])
}

// diskID is the Compute API's id of the data disk; empty while it is not known.
func (a *Agent) diskID() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.disk.id
}

// awaitOneWriter waits while it is known that others may write to the data disk. An answer that has not come holds
// nothing up.
func (a *Agent) awaitOneWriter(ctx context.Context) error {
	for {
		a.mu.Lock()
		shared := a.disk.shared
		a.mu.Unlock()
		if shared == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("etcd was not started: %s", shared)
		case <-time.After(diskPeriod):
		}
	}
}

// learnDisk asks for the data disk until its id is known and nobody else may write to it, and has the id remembered
// then. It returns with the first answer, or after diskPatience; the returned function ends the questions and waits for
// their end.
func (a *Agent) learnDisk(ctx context.Context, in identified, remember func(identity) error) (stop func()) {
	if in.cloud.DataDisk == nil || a.diskID() != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		disk, ok := a.askDisk(ctx, in.cloud)
		if !ok {
			return
		}
		a.knowDisk(in, disk)
		close(answered)
		a.awaitRelease(ctx, in, remember)
	}()
	patience := time.NewTimer(diskPatience)
	defer patience.Stop()
	select {
	case <-answered:
	case <-done:
	case <-patience.C:
	}
	return func() { cancel(); <-done }
}

// awaitRelease asks on while others may write to the disk. It is remembered only after that, so that an agent that is
// started meanwhile asks, too.
func (a *Agent) awaitRelease(ctx context.Context, in identified, remember func(identity) error) {
	for {
		a.mu.Lock()
		id, shared := a.disk.id, a.disk.shared
		a.mu.Unlock()
		if shared == "" {
			in.identity.DiskID = id
			if err := remember(in.identity); err != nil {
				a.cfg.Log.Warn("remember the data disk's id", "err", err.Error())
			}
			return
		}
		if backoff.Sleep(ctx, sharedDiskPeriod) != nil {
			return
		}
		disk, ok := a.askDisk(ctx, in.cloud)
		if !ok {
			return
		}
		a.knowDisk(in, disk)
	}
}

// askDisk asks until there is an answer, or ctx is done. Each new reason of a failure is logged once.
func (a *Agent) askDisk(ctx context.Context, cloud Cloud) (disk replica.Disk, ok bool) {
	said := ""
	retry := backoff.Backoff{First: firstDiskPause, Most: lastDiskPause}
	for {
		bounded, cancel := context.WithTimeout(ctx, diskTimeout)
		disk, err := cloud.DataDisk(bounded)
		cancel()
		if err == nil && disk.ID != "" {
			return disk, true
		}
		if err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			a.cfg.Log.Warn("disk id unknown", "err", said)
		}
		select {
		case <-ctx.Done():
			return replica.Disk{}, false
		case <-time.After(retry.Next()):
		}
	}
}

// knowDisk has what was answered from now on. Before etcd was started others' access is waited for; a member that runs
// is not stopped for it, because what the two have written is written, and people have to hear of it.
func (a *Agent) knowDisk(in identified, disk replica.Disk) {
	shared := judgeWriters(disk, in.self.Place)
	a.mu.Lock()
	first := a.disk.id == ""
	a.disk.id, a.disk.shared = disk.ID, shared
	a.mu.Unlock()
	if first {
		a.cfg.Log.Info("the data disk's id is known", "disk", disk.ID)
	}
	if shared == "" {
		a.waits.Release(dataDiskShared)
		return
	}
	a.waits.hold(dataDiskShared, errors.New(shared), dataDiskSharedNext)
}
