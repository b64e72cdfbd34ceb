package localgce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// depot is where the files of the data disks lie: the folder of the disks, or where that folder's file system cannot
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
type depot struct {
	// folder is the path for this process and the programs that it calls.
	folder string
	// clones: a file is copied at one instant (FICLONE), also while it is written to.
	clones bool
	volume *os.File // nil where plain
}

const (
	// volumeSize is the volume's size in bytes. Its file is sparse: with a log of 64 MiB it begins with 65 MiB.
	volumeSize = 64 << 30
	volumeName = "volume.xfs"
)

// openDepot finds or makes the place of the disks. One that was made as a volume remains one.
func (n names) openDepot(ctx context.Context, reflink bool) (depot, error) {
	plain, file := depot{folder: n.disks()}, n.diskFile(volumeName)
	err := os.MkdirAll(n.disks(), 0o755)
	if err == nil {
		plain.clones, err = canClone(n.disks())
	}
	if err != nil {
		return depot{}, fmt.Errorf("read the folder of the disks: %w", err)
	}
	made := exists(file)
	if !made && (!reflink || plain.clones) {
		return plain, nil
	}
	if missing := missingForVolume(); len(missing) > 0 {
		return depot{}, &PreflightError{Missing: missing}
	}
	if !made {
		if err := n.makeVolume(ctx, file); err != nil {
			return depot{}, err
		}
	}
	d, err := n.mountVolume(file)
	if err != nil {
		return depot{}, fmt.Errorf("mount the volume of the disks: %w", err)
	}
	return d, nil
}

// close lets the volume go. The kernel unmounts it when no disk on it is attached any more.
func (d depot) close() {
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
	switch err := cloneImage(probe.Name(), clone); {
	case errors.Is(err, errNoReflink):
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
	return append(missing, missingFileSystems("xfs")...)
}

// makeVolume makes the file whole or not at all.
func (n names) makeVolume(ctx context.Context, file string) error {
	if disks, _ := filepath.Glob(n.diskFile("*.img")); len(disks) > 0 { // its only error is a bad pattern
		return fmt.Errorf("reflink: %s has disks already, where files cannot be cloned (%s, and %d more): take "+
			"another state folder",
			n.disks(), filepath.Base(disks[0]), len(disks)-1)
	}
	half := file + ".new"
	f, err := os.OpenFile(half, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(f.Truncate(volumeSize), f.Close())
	}
	if err == nil {
		_, err = run(ctx, "mkfs.xfs", "-q", "-f", "-m", "reflink=1", half)
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
func (n names) mountVolume(file string) (depot, error) {
	l, err := attach(file)
	if err != nil {
		return depot{}, err
	}
	defer l.hold.Close() // the mount holds the device from then on
	fd, err := detachedMount("xfs", l.device, "nouuid")
	if err != nil {
		return depot{}, err
	}
	d := depot{folder: fmt.Sprintf("/proc/%d/fd/%d/%s", os.Getpid(), fd, n.fabric()), clones: true,
		volume: os.NewFile(uintptr(fd), file)}
	if err := os.MkdirAll(d.folder, 0o755); err != nil {
		d.close()
		return depot{}, err
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

// holds says whether a file that the kernel shows as attached is one of the project's: on a volume its path begins at
// the volume's top.
func (n names) holds(file string) bool {
	return strings.HasPrefix(file, n.disks()+string(filepath.Separator)) || strings.HasPrefix(file, "/"+n.fabric()+"/")
}

// image is the path of a disk's file.
func (p *Project) image(file string) string { return filepath.Join(p.depot.folder, file) }
