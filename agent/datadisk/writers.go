package datadisk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
)

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

// OneWriter is an error where it is known that others may write to the data disk. It waits for the first answer to what
// Learn asks, until patience after Learn has begun: an answer that has not come then holds nothing up.
func (d *Disk) OneWriter(ctx context.Context) error {
	d.mu.Lock()
	answered := d.answered
	d.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-answered:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shared != "" {
		return errors.New(d.shared)
	}
	return nil
}

// AwaitOneWriter waits while OneWriter is an error.
func (d *Disk) AwaitOneWriter(ctx context.Context) error {
	for {
		shared := d.OneWriter(ctx)
		if shared == nil {
			return nil
		}
		if backoff.Sleep(ctx, mountPeriod) != nil {
			return fmt.Errorf("etcd was not started: %w", shared)
		}
	}
}

// Ask asks how the cloud shows the data disk; an error may pass.
type Ask func(ctx context.Context) (replica.Disk, error)

// Learn asks for the data disk of self until its id is known and nobody else may write to it, and has the id remembered
// then. It asks in the background; the returned function ends the questions and waits for their end. ask may be nil:
// this VM has no data disk of its own.
func (d *Disk) Learn(ctx context.Context, self replica.Place, ask Ask, remember func(id string) error) (stop func()) {
	if ask == nil || d.ID() != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	enough, answer := context.WithTimeout(ctx, patience)
	d.mu.Lock()
	d.answered = enough.Done()
	d.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer answer()
		disk, ok := d.askUntilAnswered(ctx, ask)
		if !ok {
			return
		}
		d.know(self, disk)
		answer()
		d.awaitRelease(ctx, self, ask, remember)
	}()
	return func() { cancel(); <-done }
}

// awaitRelease asks on while others may write to the disk. It is remembered only after that, so that an agent that is
// started meanwhile asks, too.
func (d *Disk) awaitRelease(ctx context.Context, self replica.Place, ask Ask, remember func(id string) error) {
	for {
		d.mu.Lock()
		id, shared := d.id, d.shared
		d.mu.Unlock()
		if shared == "" {
			if err := remember(id); err != nil {
				d.log.Warn("remember the data disk's id", "err", err.Error())
			}
			return
		}
		if backoff.Sleep(ctx, sharedPeriod) != nil {
			return
		}
		disk, ok := d.askUntilAnswered(ctx, ask)
		if !ok {
			return
		}
		d.know(self, disk)
	}
}

// askUntilAnswered asks until there is an answer, or ctx is done. Each new reason of a failure is logged once.
func (d *Disk) askUntilAnswered(ctx context.Context, ask Ask) (disk replica.Disk, ok bool) {
	said := ""
	retry := backoff.Backoff{First: firstAskPause, Most: lastAskPause}
	for {
		bounded, cancel := context.WithTimeout(ctx, askTimeout)
		disk, err := ask(bounded)
		cancel()
		if err == nil && disk.ID != "" {
			return disk, true
		}
		if err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			d.log.Warn("disk id unknown", "err", said)
		}
		select {
		case <-ctx.Done():
			return replica.Disk{}, false
		case <-time.After(retry.Next()):
		}
	}
}

// know has what was answered from now on. Before etcd was started others' access is waited for; a member that runs
// is not stopped for it, because what the two have written is written, and people have to hear of it.
func (d *Disk) know(self replica.Place, disk replica.Disk) {
	shared := judgeWriters(disk, self)
	d.mu.Lock()
	first := d.id == ""
	d.id, d.shared = disk.ID, shared
	d.mu.Unlock()
	if first {
		d.log.Info("the data disk's id is known", "disk", disk.ID)
	}
	if shared == "" {
		d.waits.Release(dataDiskShared)
		return
	}
	d.waits.HoldFor(dataDiskShared, errors.New(shared), dataDiskSharedNext)
}
