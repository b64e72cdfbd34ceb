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

	"golang.org/x/sync/errgroup"
)

// tempPrefix marks files that a writer left behind when it died. Nothing reads them; CleanTemp removes them.
const tempPrefix = ".durable-"

// WriteFile replaces path by data with the permissions perm, which hold from the first byte on.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	return write(File{path, data, nil, perm}, os.Rename)
}

// Owner is whose a file is. A folder is not handed over with what is in it.
type Owner struct{ UID, GID int }

// WriteFileFor is WriteFile for a file of somebody else's, which takes root. Whoever reads the name meanwhile finds a
// file that is the owner's.
func WriteFileFor(owner Owner, path string, data []byte, perm fs.FileMode) error {
	return write(File{path, data, &owner, perm}, os.Rename)
}

// CreateFile is WriteFile for a file that must not exist: it returns an error that is fs.ErrExist if it does, also when
// several processes race for the name. One of them wins, because link(2) refuses an existing name.
func CreateFile(path string, data []byte, perm fs.FileMode) error {
	return write(File{path, data, nil, perm}, func(temp, path string) error {
		if err := os.Link(temp, path); err != nil {
			return err
		}
		return os.Remove(temp)
	})
}

// File is one of several that WriteFiles writes.
type File struct {
	Path string
	Data []byte
	// Owner is whose it is; nil: the caller's.
	Owner *Owner
	Perm  fs.FileMode
}

// WriteFiles is WriteFile for several files. It takes little longer than one of them, because a file system that is
// asked to sync many files at the same time does it with few writes. They are put in place in their order, each whole;
// n says how many are. A crash may leave any of them out.
func WriteFiles(files []File) (n int, err error) {
	temps := make([]*os.File, 0, len(files))
	defer func() {
		for i, t := range temps {
			t.Close()
			if i >= n {
				os.Remove(t.Name())
			}
		}
	}()
	for _, f := range files {
		temp, err := f.temporary()
		if err != nil {
			return 0, fmt.Errorf("write %s: %w", f.Path, err)
		}
		temps = append(temps, temp)
	}
	var syncing errgroup.Group
	for i, t := range temps {
		syncing.Go(func() error {
			if err := t.Sync(); err != nil {
				return fmt.Errorf("write %s: %w", files[i].Path, err)
			}
			return nil
		})
	}
	if err := syncing.Wait(); err != nil {
		return 0, err
	}
	folders := map[string]bool{}
	for i, t := range temps {
		if err = os.Rename(t.Name(), files[i].Path); err != nil {
			err = fmt.Errorf("write %s: %w", files[i].Path, err)
			break
		}
		n, folders[filepath.Dir(files[i].Path)] = i+1, true
	}
	for dir := range folders {
		err = errors.Join(err, SyncDir(dir))
	}
	return n, err
}

// temporary is the file beside its place, with its content, its owner and its permissions, and not yet synced.
func (f File) temporary() (temp *os.File, err error) {
	t, err := os.CreateTemp(filepath.Dir(f.Path), tempPrefix+filepath.Base(f.Path)+"-") // 0600 from the first byte
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.Close()
			os.Remove(t.Name())
		}
	}()
	if _, err := t.Write(f.Data); err != nil {
		return nil, err
	}
	if f.Owner != nil { // before the mode, which may let its group read
		if err := t.Chown(f.Owner.UID, f.Owner.GID); err != nil {
			return nil, err
		}
	}
	return t, t.Chmod(f.Perm)
}

func write(f File, place func(temp, path string) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", f.Path, err)
		}
	}()
	t, err := f.temporary()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			t.Close()
			os.Remove(t.Name())
		}
	}()
	if err := t.Sync(); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	if err := place(t.Name(), f.Path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(f.Path))
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
