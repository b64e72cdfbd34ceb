// Package durable writes files so that they survive a power cut: a reader finds the whole old file or the whole new
// one, never a part, and a file whose writer returned is still there after the machine lost power.
//
// It does this as every database does: write a temporary file beside the target, fsync it, rename or link it into
// place, fsync the folder. It does not lock: two writers of one name both succeed, and the later one stays.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tempPrefix marks files that a writer left behind when it died. Nothing reads them; CleanTemp removes them.
const tempPrefix = ".durable-"

// WriteFile replaces path by data with the permissions perm, which hold from the first byte on.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	return write(path, data, nil, perm, os.Rename)
}

// Owner is whose a file is. A folder is not handed over with what is in it.
type Owner struct{ UID, GID int }

// WriteFileFor is WriteFile for a file of somebody else's, which takes root. Whoever reads the name meanwhile finds a
// file that is the owner's.
func WriteFileFor(owner Owner, path string, data []byte, perm fs.FileMode) error {
	return write(path, data, &owner, perm, os.Rename)
}

// CreateFile is WriteFile for a file that must not exist: it returns an error that is fs.ErrExist if it does, also when
// several processes race for the name. One of them wins, because link(2) refuses an existing name.
func CreateFile(path string, data []byte, perm fs.FileMode) error {
	return write(path, data, nil, perm, func(temp, path string) error {
		if err := os.Link(temp, path); err != nil {
			return err
		}
		return os.Remove(temp)
	})
}

func write(path string, data []byte, owner *Owner, perm fs.FileMode, place func(temp, path string) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, tempPrefix+filepath.Base(path)+"-") // 0600 from the first byte
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if owner != nil { // before the mode, which may let its group read
		if err := f.Chown(owner.UID, owner.GID); err != nil {
			return err
		}
	}
	if err := f.Chmod(perm); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes the entries of a folder durable: a created, renamed or removed name is only then sure to stay so.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// Rename moves a file or folder within one file system and makes both folders' entries durable.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	if filepath.Dir(from) == filepath.Dir(to) {
		return nil
	}
	return SyncDir(filepath.Dir(from))
}

// CleanTemp removes what writers that died left in a folder. Call it where no writer can be at work.
func CleanTemp(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("clean folder: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clean folder: %w", err)
		}
	}
	return nil
}
