package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/host"
)

// Depot is where the files of the data disks lie: the folder of the disks, or where that folder's file system cannot
// clone files and Config.Reflink asks for it, a volume: an XFS of the project's own in a sparse file of that folder.
//
//	disks/a-data-1.img                     plain
//	disks/volume.xfs ── loop ── XFS ──┬── lgce-HASH/a-data-1.img       with a volume
//	                                  └── lgce-HASH/b-data-2.img
//
// The volume is mounted in no namespace at all: a descriptor of this process holds the mount, and files on it are
// reached through that. So nobody else sees it, and a project that dies without a word leaves nothing to unmount: the
// kernel takes the mount and the loop device back with the last descriptor, which is that of the last disk that a VM
// has attached.
type Depot struct {
	// Folder is the path for this process and the programs that it calls.
	Folder string
	// Clones: a file is copied at one instant (FICLONE), also while it is written to.
	Clones bool
	volume *os.File // nil where plain
}

// Place is where a project's disks are to lie.
type Place struct {
	// Folder is the folder of the disks, and mark the name of the folder on a volume, which is the project's alone.
	Folder, Mark string
}

func (n Place) file(name string) string { return filepath.Join(n.Folder, name) }

const (
	// volumeSize is the volume's size in bytes. Its file is sparse: with a log of 64 MiB it begins with 65 MiB.
	volumeSize = 64 << 30
	volumeName = "volume.xfs"
)

// Open finds or makes the place of the disks. One that was made as a volume remains one.
func (n Place) Open(ctx context.Context, reflink bool) (Depot, error) {
	plain, file := Depot{Folder: n.Folder}, n.file(volumeName)
	err := os.MkdirAll(n.Folder, 0o755)
	if err == nil {
		plain.Clones, err = canClone(n.Folder)
	}
	if err != nil {
		return Depot{}, fmt.Errorf("read the folder of the disks: %w", err)
	}
	made := host.Exists(file)
	if !made && (!reflink || plain.Clones) {
		return plain, nil
	}
	if missing := missingForVolume(); len(missing) > 0 {
		return Depot{}, &host.PreflightError{Missing: missing}
	}
	if !made {
		if err := n.makeVolume(ctx, file); err != nil {
			return Depot{}, err
		}
	}
	d, err := n.mountVolume(file)
	if err != nil {
		return Depot{}, fmt.Errorf("mount the volume of the disks: %w", err)
	}
	return d, nil
}

// Close lets the volume go. The kernel unmounts it when no disk on it is attached any more.
func (d Depot) Close() {
	if d.volume != nil {
		d.volume.Close()
	}
}

// canClone tries it.
func canClone(folder string) (bool, error) {
	probe, err := os.CreateTemp(folder, "probe-")
	if err != nil {
		return false, err
	}
	defer os.Remove(probe.Name())
	defer probe.Close()
	clone := probe.Name() + "-clone"
	switch err := Clone(probe.Name(), clone); {
	case errors.Is(err, ErrNoReflink):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, os.Remove(clone)
}

func missingForVolume() (missing []string) {
	if _, err := exec.LookPath("mkfs.xfs"); err != nil {
		missing = append(missing, "program mkfs.xfs (apt-get install xfsprogs)")
	}
	return append(missing, host.MissingFileSystems("xfs")...)
}

// makeVolume makes the file whole or not at all.
func (n Place) makeVolume(ctx context.Context, file string) error {
	if disks, _ := filepath.Glob(n.file("*.img")); len(disks) > 0 { // its only error is a bad pattern
		return fmt.Errorf("reflink: %s has disks already, where files cannot be cloned (%s, and %d more): take "+
			"another state folder",
			n.Folder, filepath.Base(disks[0]), len(disks)-1)
	}
	half := file + ".new"
	f, err := os.OpenFile(half, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(f.Truncate(volumeSize), f.Close())
	}
	if err == nil {
		_, err = host.Run(ctx, "mkfs.xfs", "-q", "-f", "-m", "reflink=1", half)
	}
	if err == nil {
		err = os.Rename(half, file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make the volume of the disks: %w", err), os.Remove(half))
	}
	return nil
}

// mountVolume mounts it out of everybody's way.
func (n Place) mountVolume(file string) (Depot, error) {
	l, err := Attach(file)
	if err != nil {
		return Depot{}, err
	}
	defer l.hold.Close() // the mount holds the device from then on
	fd, err := detachedMount("xfs", l.Device, "nouuid")
	if err != nil {
		return Depot{}, err
	}
	d := Depot{Folder: fmt.Sprintf("/proc/%d/fd/%d/%s", os.Getpid(), fd, n.Mark), Clones: true,
		volume: os.NewFile(uintptr(fd), file)}
	if err := os.MkdirAll(d.Folder, 0o755); err != nil {
		d.Close()
		return Depot{}, err
	}
	return d, nil
}

// detachedMount mounts a device in no namespace. Who closes the descriptor unmounts it, once no file of it is open.
func detachedMount(fstype, device, flag string) (int, error) {
	context, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open file system %s: %w", fstype, err)
	}
	defer unix.Close(context)
	err = unix.FsconfigSetString(context, "source", device)
	if err == nil {
		err = unix.FsconfigSetFlag(context, flag)
	}
	if err == nil {
		err = unix.FsconfigCreate(context)
	}
	if err != nil {
		return -1, fmt.Errorf("open %s as %s: %w", device, fstype, err)
	}
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
}

// Holds says whether a file that the kernel shows as attached is one of the project's: on a volume its path begins at
// the volume's top.
func (n Place) Holds(file string) bool {
	return strings.HasPrefix(file, n.Folder+string(filepath.Separator)) || strings.HasPrefix(file, "/"+n.Mark+"/")
}
