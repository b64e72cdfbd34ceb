package lastwords

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// disk writes words. No file stays open, so that nothing of it keeps the disk from being unmounted.
type disk struct {
	Place
	// begun are the sources whose last write succeeded: what follows needs no heading.
	begun map[string]bool
}

func newDisk(p Place) *disk { return &disk{Place: p, begun: map[string]bool{}} }

// suffix is that of a source's file; with former it is the file before it.
const (
	suffix = ".log"
	former = ".1"
)

func pathOf(dir, source string) string { return filepath.Join(dir, source+suffix) }

// write appends words to a source's file, and sees to it that they are on the disk.
func (d *disk) write(source string, w words) (err error) {
	path := pathOf(d.Dir, source)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(d.Dir, 0o700); err == nil {
			f, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		}
	}
	if err != nil {
		return err
	}
	size, err := d.append(f, source, w)
	d.begun[source] = err == nil
	if err = errors.Join(err, f.Close()); err == nil && size >= fileLimit {
		return os.Rename(path, path+former)
	}
	return err
}

// append returns the size that the file has then.
func (d *disk) append(f *os.File, source string, w words) (size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size = info.Size()
	var text []byte
	if size == 0 || !d.begun[source] {
		if text, err = endOfLine(f, size); err != nil {
			return size, err
		}
		text = append(text, d.Boot.heading(time.Now())...)
	}
	if w.lost > 0 {
		text = fmt.Appendf(text, "%s%d bytes were left out here: too many in a moment\n", mark, w.lost)
	}
	n, err := f.Write(append(text, w.text...))
	if err != nil {
		return size + int64(n), err
	}
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return size, &os.PathError{Op: "sync", Path: f.Name(), Err: err}
	}
	return size + int64(n), nil
}

// endOfLine is what ends a last line that is torn.
func endOfLine(f *os.File, size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, size-1); err != nil {
		return nil, err
	}
	if last[0] == '\n' {
		return nil, nil
	}
	return []byte("\n"), nil
}

// Sources lists whose words a folder has. That there is no folder is no error.
func Sources(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		name, isWords := strings.CutSuffix(strings.TrimSuffix(e.Name(), former), suffix)
		if isWords && validSource().MatchString(name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, err
}

// read is all that a source has said, as far as it is kept.
func read(dir, source string) ([]byte, error) {
	path := pathOf(dir, source)
	before, errBefore := os.ReadFile(path + former)
	text, err := os.ReadFile(path)
	for _, err := range []error{errBefore, err} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return append(before, text...), nil
}

// forgetOldest removes the files of sources that nothing runs any more, where there are too many.
func (d *disk) forgetOldest(sources []string) []string {
	if len(sources) <= mostSources {
		return sources
	}
	written := func(source string) time.Time {
		info, err := os.Stat(pathOf(d.Dir, source))
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortStableFunc(sources, func(a, b string) int { return written(b).Compare(written(a)) })
	for _, source := range sources[mostSources:] {
		_ = os.Remove(pathOf(d.Dir, source)) // the next boot tries again
		_ = os.Remove(pathOf(d.Dir, source) + former)
	}
	return sources[:mostSources]
}
