// Package tree unpacks the root file system of a baked image once, for every VM that boots from it.
//
//	CACHE/root-SHA256     a whole tree, named for its archive; a VM's boot disk is an overlay above it
//	CACHE/root.part       one that is being unpacked; it gets its name when it is whole
//	CACHE/root.lock       held by whoever opens a tree, so that two do not unpack side by side
//
// It guarantees that a tree which has its name is whole, and that none goes while somebody holds it. Trees that nobody
// has used for a week are removed when another is unpacked.
package tree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unused is how long a tree stays that nobody opens. A person goes back to last week's image now and then.
const unused = 7 * 24 * time.Hour

// Tree is an unpacked root file system. Nobody may write to it.
type Tree struct {
	// Path is the folder.
	Path string
	hold *os.File
}

// Close lets the tree go. It stays in the cache.
func (t *Tree) Close() { t.hold.Close() }

// Open returns the tree of an archive, a tar file, from the cache folder; it unpacks it there if need be, which
// unpacking is told of first.
func Open(ctx context.Context, cache, archive string, unpacking func()) (*Tree, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache of trees: %w", err)
	}
	lock, err := holdFile(filepath.Join(cache, "root.lock"), os.O_CREATE|os.O_RDWR, unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	sum, err := sumOf(archive)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(cache, "root-"+sum)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		unpacking()
		if err := unpack(ctx, archive, path); err != nil {
			return nil, err
		}
		if err := prune(cache, path); err != nil {
			return nil, err
		}
	}
	hold, err := holdFile(path, os.O_RDONLY, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil { // when it was used last
		hold.Close()
		return nil, fmt.Errorf("mark a tree as used: %w", err)
	}
	return &Tree{Path: path, hold: hold}, nil
}

// holdFile opens a file or folder and locks it until it is closed, or the process dies.
func holdFile(path string, flags, lock int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, fmt.Errorf("hold a tree: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), lock); err != nil {
		f.Close()
		return nil, fmt.Errorf("hold %s: %w", path, err)
	}
	return f, nil
}

// sumOf is an archive's SHA-256. Reading a gigabyte takes seconds, so where SHA256SUMS beside it is not older than the
// archive, which a bake leaves so, that one is believed.
func sumOf(archive string) (string, error) {
	made, err := os.Stat(archive)
	if err != nil {
		return "", fmt.Errorf("find the image's tree: %w", err)
	}
	list := filepath.Join(filepath.Dir(archive), "SHA256SUMS")
	if info, err := os.Stat(list); err != nil || info.ModTime().Before(made.ModTime()) {
		return hash(archive)
	}
	sums, err := os.ReadFile(list)
	if err != nil {
		return "", fmt.Errorf("read the hashes of the image: %w", err)
	}
	for line := range strings.Lines(string(sums)) {
		if f := strings.Fields(line); len(f) == 2 && f[1] == filepath.Base(archive) && len(f[0]) == 2*sha256.Size {
			return f[0], nil
		}
	}
	return hash(archive)
}

func hash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the image's tree: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read the image's tree: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// unpack makes the tree under another name first. The cache's lock is held, so an earlier one of that name is left
// over.
func unpack(ctx context.Context, archive, path string) error {
	part := filepath.Join(filepath.Dir(path), "root.part")
	if err := errors.Join(os.RemoveAll(part), os.Mkdir(part, 0o755)); err != nil {
		return fmt.Errorf("unpack the image's tree: %w", err)
	}
	cmd := exec.CommandContext(ctx, "tar", "-C", part, "--numeric-owner", "--xattrs", "--xattrs-include=*", "-xpf",
		archive)
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("unpack %s: %w: %s", archive, err, strings.TrimSpace(string(out))),
			os.RemoveAll(part))
	}
	folder, err := os.Open(part)
	if err != nil {
		return fmt.Errorf("unpack the image's tree: %w", err)
	}
	defer folder.Close()
	if err := unix.Syncfs(int(folder.Fd())); err != nil { // a power cut must not leave an empty file under the name
		return fmt.Errorf("write the image's tree: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("unpack the image's tree: %w", err)
	}
	return nil
}

// prune removes the trees that nobody holds and that nobody has used for long. It takes the name from each first, so
// that none is there in part.
func prune(cache, except string) error {
	trees, _ := filepath.Glob(filepath.Join(cache, "root-*")) // its only error is a bad pattern
	for _, path := range trees {
		info, err := os.Stat(path)
		if err != nil || path == except || time.Since(info.ModTime()) < unused {
			continue
		}
		hold, err := holdFile(path, os.O_RDONLY, unix.LOCK_EX|unix.LOCK_NB)
		if err != nil {
			continue // it is in use
		}
		part := filepath.Join(cache, "root.part")
		err = errors.Join(os.Rename(path, part), os.RemoveAll(part))
		hold.Close()
		if err != nil {
			return fmt.Errorf("remove an old tree: %w", err)
		}
	}
	return nil
}
