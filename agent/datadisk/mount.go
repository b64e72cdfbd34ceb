package datadisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/internal/replica"
)

// The waits for a data disk that can be used. Nothing is read or written where it has to be mounted before: what lies
// in the folder beneath the mount point is nobody's.
const (
	dataDiskMissing = "data-disk-missing"
	dataDiskDamaged = "data-disk-damaged"
	dataDiskHangs   = "data-disk-hangs"
)

var mountWaits = []string{dataDiskMissing, dataDiskDamaged, dataDiskHangs}

// places are where the kernel says what disks there are and what is mounted.
type places struct{ byID, mountinfo, devices string }

var kernel = places{byID: "/dev/disk/by-id", mountinfo: "/proc/self/mountinfo", devices: "/sys/dev/block"}

// seenDisk is what is seen of the data disk, and of the folder at which it has to be mounted.
type seenDisk struct {
	device, dir string
	// unit mounts the disk; empty: no unit of the image does.
	unit string
	// attached: a disk with this device name is there. readErr is why it cannot be read.
	attached bool
	readErr  error
	mounted  bool
	// readOnly: writing to the mounted file system is refused. dirErr is why its top folder cannot be read.
	readOnly bool
	dirErr   error
}

// look observes the disk with a GCE device name.
func (p places) look(name, dir string) seenDisk {
	s := seenDisk{device: filepath.Join(p.byID, "google-"+name), dir: dir}
	mounts, err := os.ReadFile(p.mountinfo)
	if s.mounted = err == nil && datadir.MountedAt(string(mounts), dir); s.mounted {
		var room unix.Statfs_t
		if s.dirErr = unix.Statfs(dir, &room); s.dirErr == nil {
			s.readOnly = room.Flags&unix.ST_RDONLY != 0
			_, s.dirErr = os.ReadDir(dir)
		}
		return s
	}
	f, err := os.Open(s.device)
	if s.attached = !errors.Is(err, fs.ErrNotExist); !s.attached {
		return s
	}
	if s.readErr = err; err == nil {
		defer f.Close()
		_, s.readErr = io.ReadFull(f, make([]byte, 4096))
	}
	return s
}

// judgeDisk says what keeps a data disk from being used; nil: nothing does.
func judgeDisk(s seenDisk) *replica.Wait {
	const orReplace = "If the other replicas have a quorum, recreating this VM with an empty disk repairs it " +
		"as well. The agent goes on by itself."
	repair := fmt.Sprintf("The kernel's lines before this one, and `journalctl -b`, say why. Try `fsck -f %s` "+
		"and then "+
		"`%s`, or the first with the disk attached to another VM. ", s.device, s.mountCommand()) + orReplace
	damaged := func(format string, args ...any) *replica.Wait {
		return &replica.Wait{Name: dataDiskDamaged, Reason: fmt.Sprintf(format, args...), Next: repair}
	}
	switch {
	case s.mounted && s.dirErr != nil:
		return damaged("the data disk at %s cannot be read: %v", s.dir, s.dirErr)
	case s.mounted && s.readOnly:
		return damaged("the data disk is mounted read-only at %s", s.dir)
	case s.mounted:
		return nil
	case !s.attached:
		return &replica.Wait{Name: dataDiskMissing, Reason: fmt.Sprintf("no disk is attached as %s, which has to be "+
			"mounted at %s", s.device, s.dir), Next: "Attach the replica's data disk to this VM under that device " +
			"name; it is mounted then. " + orReplace}
	case s.readErr != nil:
		return damaged("the data disk %s cannot be read: %v", s.device, s.readErr)
	}
	return damaged("the data disk %s is attached, and is not mounted at %s", s.device, s.dir)
}

// mountCommand mounts the disk as the image does.
func (s seenDisk) mountCommand() string {
	if s.unit != "" {
		return "systemctl start " + s.unit
	}
	return "mount -o nodev,nosuid,noexec " + s.device + " " + s.dir
}

// AwaitMount observes the disk with a GCE device name until it is mounted at dir and can be used. What reads a disk
// that stands still does not return: it is waited for here, and no second one is begun.
func (d *Disk) AwaitMount(ctx context.Context, device, dir string) error {
	defer d.release("")
	var settling time.Time // since when the disk is attached, and only has to be mounted
	reason := errors.New("it was not observed yet")
	for {
		s, err := d.observe(ctx, device, dir)
		if err != nil {
			return fmt.Errorf("the data disk was not usable yet: %w: %w", reason, err)
		}
		w := judgeDisk(s)
		if w == nil {
			return nil
		}
		if !s.toBeMounted() {
			settling = time.Time{}
		} else if settling.IsZero() {
			settling = time.Now()
		}
		reason = errors.New(w.Reason)
		if s.toBeMounted() && time.Since(settling) < settles {
			d.release("")
		} else {
			d.release(w.Name)
			d.waits.HoldFor(w.Name, reason, w.Next)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the data disk was not usable yet: %w", reason)
		case <-time.After(mountPeriod):
		}
	}
}

// toBeMounted: nothing is wrong with the disk but that it is not mounted, which may be about to happen.
func (s seenDisk) toBeMounted() bool { return s.attached && !s.mounted && s.readErr == nil }

// observe observes the disk, and says so while that does not return. An error: ctx is done.
func (d *Disk) observe(ctx context.Context, device, dir string) (seenDisk, error) {
	seen := make(chan seenDisk, 1)
	go func() { seen <- d.places.look(device, dir) }() // what hangs in the kernel cannot be ended
	late := time.NewTimer(hangs)
	defer late.Stop()
	for {
		select {
		case s := <-seen:
			if device == d.image.Device && dir == d.image.Dir {
				s.unit = d.image.Unit
			}
			return s, nil
		case <-ctx.Done():
			return seenDisk{}, context.Cause(ctx)
		case <-late.C:
			d.release(dataDiskHangs)
			d.waits.HoldFor(dataDiskHangs, fmt.Errorf("the data disk %s, or what is mounted at %s, does not answer",
				filepath.Join(d.places.byID, "google-"+device), dir), "The kernel's lines before this one may say why. "+
				"If it does not answer for minutes, stop and start the VM, or recreate it. The agent goes on by "+
				"itself.")
		}
	}
}

// release ends the waits for the data disk, but for one.
func (d *Disk) release(but string) {
	for _, name := range mountWaits {
		if name != but {
			d.waits.Release(name)
		}
	}
}
