package disk

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Clone copies a disk's file at one instant by sharing its blocks (reflink). XFS and btrfs can; on others it
// returns ErrNoReflink.
func Clone(from, to string) error {
	source, target, err := openCopy(from, to)
	if err != nil {
		return err
	}
	defer source.Close()
	defer target.Close()
	err = unix.IoctlFileClone(int(target.Fd()), int(source.Fd()))
	if err == nil {
		return nil
	}
	_ = os.Remove(to) // it is empty
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ENOTTY) ||
		errors.Is(err, unix.EINVAL) {
		return ErrNoReflink
	}
	return fmt.Errorf("clone disk %s: %w", from, err)
}

// ErrNoReflink says that the file system of the state folder shares no blocks between files.
var ErrNoReflink = errors.New("the disks lie where files cannot be cloned")

// Copy copies a file that nobody writes to, without its holes.
func Copy(from, to string) (err error) {
	if err := Clone(from, to); !errors.Is(err, ErrNoReflink) {
		return err
	}
	source, target, err := openCopy(from, to)
	if err != nil {
		return err
	}
	defer source.Close()
	defer func() {
		if err = errors.Join(err, target.Close()); err != nil {
			_ = os.Remove(to)
		}
	}()
	info, err := source.Stat()
	if err == nil {
		err = target.Truncate(info.Size())
	}
	for at := int64(0); err == nil; {
		at, err = copyExtent(source, target, at)
	}
	if errors.Is(err, unix.ENXIO) { // no data behind at
		return nil
	}
	return fmt.Errorf("copy disk %s: %w", from, err)
}

// copyExtent copies the first run of data at or behind an offset and returns its end.
func copyExtent(source, target *os.File, at int64) (int64, error) {
	begin, err := unix.Seek(int(source.Fd()), at, unix.SEEK_DATA)
	if err != nil {
		return at, err
	}
	end, err := unix.Seek(int(source.Fd()), begin, unix.SEEK_HOLE)
	if err != nil {
		return at, err
	}
	_, err = io.Copy(io.NewOffsetWriter(target, begin), io.NewSectionReader(source, begin, end-begin))
	return end, err
}

func openCopy(from, to string) (source, target *os.File, err error) {
	if source, err = os.Open(from); err != nil {
		return nil, nil, fmt.Errorf("copy disk: %w", err)
	}
	if target, err = os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		source.Close()
		return nil, nil, fmt.Errorf("copy disk: %w", err)
	}
	return source, target, nil
}
