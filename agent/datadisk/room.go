package datadisk

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/local"
)

// The wait for room on the data disk, before anything fails for want of it. In a quiet cluster that takes hours: etcd
// writes into files that it has made before.
const (
	diskNearlyFull     = "disk-nearly-full"
	diskNearlyFullNext = "Make the data disk larger, or free space in %s: what is not etcd's first, then the oldest " +
		"directories in its `archive/`, moved to another disk. Leave `etcd/` alone."
)

const (
	// leastFree is what two files of etcd's log take, mostFree what a copy of a large database and much of a log do.
	// Between the two a disk is nearly full with a twentieth of it free.
	leastFree, mostFree = 128 << 20, 2 << 30
	freePart            = 20
)

// HasRoom says whether the disk of a folder takes so many bytes more without being nearly full.
func HasRoom(folder string, bytes int64) bool {
	free, total, err := local.Room(folder)
	return err == nil && !isNearlyFull(free-bytes, total, false)
}

// isNearlyFull judges how much of a disk is free, in bytes. A disk that was nearly full needs a quarter more to be well
// again: snapshots come and go.
func isNearlyFull(free, total int64, was bool) bool {
	least := min(max(total/freePart, leastFree), mostFree)
	if was {
		least += least / 4
	}
	return free < least
}

// WatchRoom says where the disk on which dir is is nearly full, until ctx is done, and measures it for Size.
func (d *Disk) WatchRoom(ctx context.Context, dir string) {
	d.watchRoom(ctx, dir, func() (free, total int64, err error) {
		if free, total, err = local.Room(dir); err == nil {
			d.note(Size{Device: d.places.deviceOf(dir), FileSystem: total, Free: free})
		}
		return free, total, err
	})
}

// watchRoom asks each roomPeriod. The reason changes when the disk gets fuller by a hundredth, and not with each file.
func (d *Disk) watchRoom(ctx context.Context, dir string, room func() (free, total int64, err error)) {
	held, said := false, int64(0)
	for ctx.Err() == nil {
		free, total, err := room()
		switch {
		case err != nil || total <= 0: // what a disk has that cannot be asked is not known
		case !isNearlyFull(free, total, held):
			d.waits.Release(diskNearlyFull)
			held = false
		default:
			if part := 100 * free / total; !held || part < said {
				held, said = true, part
				d.waits.HoldFor(diskNearlyFull, fmt.Errorf("the data disk is nearly full: %d %% of its %d MiB are free",
					part, total>>20), fmt.Sprintf(diskNearlyFullNext, dir))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(roomPeriod):
		}
	}
}
