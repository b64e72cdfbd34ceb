// Package tree unpacks the root file system of a baked image once, for every VM that boots from it.
//
//	CACHE/root-SHA256     a whole tree, named for its archive; a VM's boot disk is an overlay above it
//	CACHE/read-FILE       a link to the tree of an archive's file, as long as nobody writes to that file
//	CACHE/root.part       one that is being unpacked; it gets its name when it is whole
//	CACHE/root.lock       held by whoever opens a tree, so that two do not unpack side by side
//
// It guarantees that a tree which has its name is whole and was unpacked from these bytes, and that none goes while
// somebody holds it. Trees that nobody has used for a week are removed when another is unpacked. Only the cache's owner
// can enter it: a tree has set-user-ID programs.
package tree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
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

// lockPause is between two tries to take the cache's lock, which is held for seconds where a tree is unpacked.
const lockPause = 50 * time.Millisecond

// Tree is an unpacked root file system. Nobody may write to it.
type Tree struct {
	// Path is the folder.
	Path string
	hold *os.File
}

// Close lets the tree go. It stays in the cache.
func (t *Tree) Close() { t.hold.Close() }

// Open returns the tree of an archive, a tar file, from the cache folder; it unpacks it there if need be, which
// unpacking is told of first. It waits for whoever else opens a tree, until ctx ends.
func Open(ctx context.Context, cache, archive string, unpacking func()) (*Tree, error) {
	if err := errors.Join(os.MkdirAll(cache, 0o700), os.Chmod(cache, 0o700)); err != nil {
		return nil, fmt.Errorf("make the cache of trees: %w", err)
	}
	lock, err := waitFor(ctx, filepath.Join(cache, "root.lock"))
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	path, err := find(ctx, cache, archive, unpacking)
	if err != nil {
		return nil, err
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

// find is the path of an archive's tree. Reading a gigabyte takes seconds, so an archive is read once, until its file
// is written to or replaced.
func find(ctx context.Context, cache, archive string, unpacking func()) (string, error) {
	file, err := os.Open(archive)
	if err != nil {
		return "", fmt.Errorf("find the image's tree: %w", err)
	}
	defer file.Close()
	link, err := linkFor(cache, file)
	if err != nil {
		return "", err
	}
	if name, err := os.Readlink(link); err == nil {
		path := filepath.Join(cache, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("read the image's tree: %w", err)
	}
	path := named(cache, sum)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		unpacking()
		if path, err = unpack(ctx, cache, file); err != nil {
			return "", err
		}
		if err := prune(cache, path); err != nil {
			return "", err
		}
	}
	switch after, err := linkFor(cache, file); {
	case err != nil:
		return "", err
	case after != link:
		return "", fmt.Errorf("read the image's tree: %s changed meanwhile", archive)
	}
	if err := errors.Join(os.RemoveAll(link), os.Symlink(filepath.Base(path), link)); err != nil {
		return "", fmt.Errorf("note the image's tree: %w", err)
	}
	return path, nil
}

// named is the path of the tree whose archive has this hash.
func named(cache string, sum hash.Hash) string {
	return filepath.Join(cache, "root-"+hex.EncodeToString(sum.Sum(nil)))
}

// linkFor is where a file's tree is noted. Its name has the file's ctime: unlike the mtime, no copy brings an old one.
func linkFor(cache string, file *os.File) (string, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return "", fmt.Errorf("find the image's tree: %w", err)
	}
	return filepath.Join(cache, fmt.Sprintf("read-%d-%d-%d-%d", s.Dev, s.Ino, s.Size, s.Ctim.Nano())), nil
}

// holdFile opens a file or folder and locks it until it is closed, or the process dies. It does not wait.
func holdFile(path string, flags, lock int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("hold a tree: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), lock|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("hold %s: %w", path, err)
	}
	return f, nil
}

// waitFor holds a file alone, as soon as nobody else does.
func waitFor(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := holdFile(path, os.O_CREATE|os.O_RDWR, unix.LOCK_EX)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s, which another process holds: %w", path, ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

// unpack makes the tree under another name first. The cache's lock is held, so an earlier one of that name is left
// over. The tree is named for the bytes that tar was given.
func unpack(ctx context.Context, cache string, archive *os.File) (string, error) {
	part := filepath.Join(cache, "root.part")
	_, err := archive.Seek(0, io.SeekStart)
	if err := errors.Join(err, os.RemoveAll(part), os.Mkdir(part, 0o755)); err != nil {
		return "", fmt.Errorf("unpack the image's tree: %w", err)
	}
	sum := sha256.New()
	cmd := exec.CommandContext(ctx, "tar", "-C", part, "--numeric-owner", "--xattrs", "--xattrs-include=*", "-xpf", "-")
	cmd.Stdin = io.TeeReader(archive, sum)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("unpack %s: %w: %s", archive.Name(), err, strings.TrimSpace(string(out))),
			os.RemoveAll(part))
	}
	if _, err := io.Copy(sum, archive); err != nil { // what is behind the archive's end
		return "", fmt.Errorf("read the image's tree: %w", err)
	}
	folder, err := os.Open(part)
	if err != nil {
		return "", fmt.Errorf("unpack the image's tree: %w", err)
	}
	defer folder.Close()
	if err := unix.Syncfs(int(folder.Fd())); err != nil { // a power cut must not leave an empty file under the name
		return "", fmt.Errorf("write the image's tree: %w", err)
	}
	path := named(cache, sum)
	if err := os.Rename(part, path); err != nil {
		return "", fmt.Errorf("unpack the image's tree: %w", err)
	}
	return path, nil
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
		hold, err := holdFile(path, os.O_RDONLY, unix.LOCK_EX)
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
	return pruneLinks(cache)
}

// pruneLinks removes what notes a tree that is gone.
func pruneLinks(cache string) error {
	links, _ := filepath.Glob(filepath.Join(cache, "read-*"))
	for _, link := range links {
		if _, err := os.Stat(link); errors.Is(err, os.ErrNotExist) {
			if err := os.Remove(link); err != nil {
				return fmt.Errorf("remove the note of an old tree: %w", err)
			}
		}
	}
	return nil
}
