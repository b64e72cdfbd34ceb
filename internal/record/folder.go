package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/durable"
)

// folder is the driver for one machine and for tests: objects are files of a local file system. link(2) decides who was
// first, also between processes.
type folder struct {
	root    string // must exist: a missing one is more likely a wrong path or a missing mount than a new record
	cluster string
}

// Only root reads the record: the bundle is sealed, but there is no reason to hand it out.
const (
	folderMode fs.FileMode = 0o700
	fileMode   fs.FileMode = 0o600
)

func (f *folder) where(key string) string { return filepath.Join(f.root, f.cluster) + "/" + key }

// checkRoot tells a missing folder from an empty record.
func (f *folder) checkRoot() error {
	info, err := os.Stat(f.root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("folder %s does not exist: create it (mkdir -p %[1]s) or mount what it should be", f.root)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder: the record's URL must name one", f.root)
	}
	return nil
}

// notThere: there is no such file, nor can there be one where something else stands for a folder above it.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func (f *folder) list(ctx context.Context) ([]entry, error) {
	if err := f.checkRoot(); err != nil {
		return nil, err
	}
	top := filepath.Join(f.root, f.cluster)
	info, err := os.Stat(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was ever written
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", top)
	}
	if err != nil {
		return nil, err
	}
	var entries []entry
	begun := time.Now()
	err = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if d.IsDir() || strings.HasPrefix(d.Name(), ".") { // a dot: a file that a writer has not finished
			return nil
		}
		e, err := fileEntry(top, name, d)
		e.young = begun.Sub(e.written) < stampTick
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	return entries, nil
}

// stampTick is longer than a tick of any file system's clock: ext4's and xfs' is a few milliseconds, that of ext4 with small inodes a second.
const stampTick = 2 * time.Second

// fileEntry describes one file. What replaces it has another inode, because both are there at once; but what replaces that may have the
// first one's again, and within one tick of the clock its time, too. It was begun after the listing, so a file that is older than a tick is safe.
func fileEntry(top, name string, d fs.DirEntry) (entry, error) {
	info, err := d.Info()
	if err != nil {
		return entry{}, err
	}
	key, err := filepath.Rel(top, name)
	if err != nil {
		return entry{}, err
	}
	stamp := strconv.FormatInt(info.ModTime().UnixNano(), 36) + "." + strconv.FormatInt(info.Size(), 36)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		stamp += "." + strconv.FormatUint(st.Ino, 36)
	}
	return entry{key: filepath.ToSlash(key), stamp: stamp, written: info.ModTime().UTC()}, nil
}

func (f *folder) read(_ context.Context, key string) ([]byte, error) {
	file, err := os.Open(f.where(key))
	if notThere(err) {
		return nil, errors.Join(errAbsent, f.checkRoot())
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return readLimited(key, file, info.Size())
}

func (f *folder) create(_ context.Context, key string, data []byte) error {
	if err := f.makeFolders(key); err != nil {
		return err
	}
	err := durable.CreateFile(f.where(key), data, fileMode)
	if errors.Is(err, fs.ErrExist) {
		// The winner may not have come to its fsync yet: what a loser acts on must be as durable as what the winner does.
		if err := durable.SyncDir(filepath.Dir(f.where(key))); err != nil {
			return err
		}
		return errExists
	}
	return err
}

func (f *folder) overwrite(_ context.Context, key string, data []byte) error {
	if err := f.makeFolders(key); err != nil {
		return err
	}
	return durable.WriteFile(f.where(key), data, fileMode)
}

// makeFolders makes the folders above a key, below the root, durably.
func (f *folder) makeFolders(key string) error {
	if err := f.checkRoot(); err != nil {
		return err
	}
	dir := f.root
	for _, part := range strings.Split(filepath.Dir(f.cluster+"/"+key), "/") {
		parent := dir
		dir = filepath.Join(dir, part)
		err := os.Mkdir(dir, folderMode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Also for a folder that was there: another process may have made it this instant and not be at its fsync yet.
		if err := durable.SyncDir(parent); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) guards(context.Context) []Finding {
	return []Finding{{Warn, "deletion", "a folder serves one machine and tests: nothing guards its files against deletion"}}
}
