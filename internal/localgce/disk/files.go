package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// dataFile is the one file of a data disk that fits a path or pattern, relative to where it is mounted: the last in
// order, which for a WAL is the one that is written.
func dataFile(root *os.Root, pattern string) (string, error) {
	if !filepath.IsLocal(pattern) {
		return "", fmt.Errorf("path %q: it must be relative to the disk's top folder and stay below it", pattern)
	}
	found, err := fs.Glob(root.FS(), filepath.ToSlash(filepath.Clean(pattern)))
	if err != nil {
		return "", fmt.Errorf("path %q: %w", pattern, err)
	}
	for i := len(found) - 1; i >= 0; i-- {
		if info, err := root.Stat(found[i]); err == nil && info.Mode().IsRegular() {
			return found[i], nil
		}
	}
	return "", fmt.Errorf("path %q: no file of the disk fits", pattern)
}

// Corruption says which bits of a file are flipped.
type Corruption struct {
	// Path is relative to the disk's top folder; it may be a pattern as path.Match has it, and means the last file in
	// order that fits.
	Path string
	// Offset is where it begins, in bytes; below 0, from the file's end.
	Offset int64
	// Bits are flipped in a row: 1 where not given.
	Bits int
}

// Corrupt flips bits in a file, and returns its path.
func Corrupt(root *os.Root, c Corruption) (path string, err error) {
	c.Bits = cmp.Or(c.Bits, 1)
	err = changeFile(root, c.Path, func(f *os.File, size int64) error {
		path = f.Name()
		bytes := (int64(c.Bits) + 7) / 8
		at := fromEnd(c.Offset, size)
		if c.Bits < 1 || at < 0 || at+bytes > size {
			return fmt.Errorf("%d bits at %d: the file has %d bytes", c.Bits, c.Offset, size)
		}
		buffer := make([]byte, bytes)
		if _, err := f.ReadAt(buffer, at); err != nil {
			return err
		}
		for i := range c.Bits {
			buffer[i/8] ^= 1 << (i % 8)
		}
		_, err := f.WriteAt(buffer, at)
		return err
	})
	return path, err
}

// Truncate cuts a file to a size in bytes, below 0 to so many fewer than it has, and returns its path.
func Truncate(root *os.Root, pattern string, size int64) (path string, err error) {
	err = changeFile(root, pattern, func(f *os.File, has int64) error {
		path = f.Name()
		if to := fromEnd(size, has); to >= 0 && to < has {
			return f.Truncate(to)
		}
		return fmt.Errorf("cut to %d: the file has %d bytes", size, has)
	})
	return path, err
}

func fromEnd(offset, size int64) int64 {
	if offset < 0 {
		return size + offset
	}
	return offset
}

// changeFile changes one file and syncs it.
func changeFile(root *os.Root, pattern string, change func(f *os.File, size int64) error) error {
	path, err := dataFile(root, pattern)
	if err != nil {
		return err
	}
	f, err := root.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = change(f, info.Size())
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// filler takes a data disk's space where no program looks.
const filler = "lost+found/localgce-filler"

// Fill takes all space but so many bytes.
func Fill(root *os.Root, leave int64) error {
	var space unix.Statfs_t
	f, err := root.OpenFile(filler, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fstatfs(int(f.Fd()), &space); err != nil {
		return err
	}
	block := int64(space.Bsize)
	if free := int64(space.Bfree) * block; leave < 0 || leave > free {
		return fmt.Errorf("leave %d bytes: 0 to %d are free", leave, free)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	for chunk := int64(1 << 30); chunk >= block; { // the reserved blocks too: root may use them
		switch err := unix.Fallocate(int(f.Fd()), 0, end, chunk); {
		case err == nil:
			end += chunk
		case errors.Is(err, unix.ENOSPC):
			chunk /= 2
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
	return errors.Join(f.Truncate(max(0, end-leave)), f.Sync())
}

// Free ends fill.
func Free(root *os.Root) error {
	err := root.Remove(filler)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it was not filled")
	}
	return err
}
