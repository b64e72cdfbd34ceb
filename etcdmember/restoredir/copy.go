package restoredir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/local"
)

// copyTree copies a directory's files and folders. Where the file system can, the copy shares its blocks with the
// original until one of the two is written to, so a copy of gigabytes takes no room and no time.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular():
			return nil // a socket or a lock of a process that is gone
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	_, err = io.Copy(out, in)
	return err
}

// makingReserve is left free on the data disk by a restore, whatever it copies: etcd needs room for its log.
const makingReserve = 256 << 20

// ErrNoRoom says that the data disk has too little room for a restore.
var ErrNoRoom = errors.New("too little room on the data disk")

// CheckRoom refuses what would fill the data disk.
func CheckRoom(dir string, need int64, what string) error {
	free, _, err := local.Room(dir)
	if err != nil {
		return err
	}
	if free < need+makingReserve {
		return fmt.Errorf("%w: %s needs %d MiB and %d MiB of reserve, %s has %d MiB; make the disk larger, or take "+
			"old directories out of its archive",
			ErrNoRoom, what, need>>20, makingReserve>>20, dir, free>>20)
	}
	return nil
}
