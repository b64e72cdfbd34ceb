package certs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/quorate/quorate/internal/durable"
)

// folderMode keeps the names of the files from others, too. Where some files are others', these can pass.
func (k *keeper) folderMode() fs.FileMode {
	if len(k.Owners) > 0 {
		return 0o711
	}
	return 0o700
}

// badSuffix marks what stood in a managed file's place and was not one. It may hold a key: it keeps its permissions.
const badSuffix = ".bad"

// disk is how Ensure reads and changes files. Each change takes effect whole or not at all; the tests cut it off before
// and behind every one of them.
type disk struct {
	read reader
	// write puts files in place in their order, and says how many are.
	write  func(files ...durable.File) (n int, err error)
	rename func(from, to string) error
	// sync makes a folder's own entries durable.
	sync func(dir string) error
}

// aside renames what stands in a file's place to the first free name with badSuffix. An earlier one stays: it may be a
// folder, which no rename replaces, or all that is left of a key.
func (d disk) aside(path string) error {
	to := path + badSuffix
	for n := 2; ; n++ {
		_, err := os.Lstat(to)
		if errors.Is(err, fs.ErrNotExist) {
			return d.rename(path, to)
		}
		if err != nil {
			return err
		}
		to = fmt.Sprintf("%s%s.%d", path, badSuffix, n)
	}
}

// folders makes both folders, their owner's alone, and removes what a killed writer left.
func (k *keeper) folders() error {
	for _, dir := range []string{k.Files.Dir, k.Files.Volatile} {
		if err := k.folder(dir); err != nil {
			return err
		}
		if err := durable.CleanTemp(dir); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) folder(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := errors.Join(os.MkdirAll(dir, k.folderMode()), os.Chmod(dir, k.folderMode())); err != nil {
			return err
		}
		return k.disk.sync(filepath.Dir(dir))
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	case info.Mode().Perm()&0o077 != k.folderMode()&0o077:
		return os.Chmod(dir, k.folderMode())
	}
	return nil
}

// owners hands over what is there and somebody else's: a disk of before there were such users.
func (k *keeper) owners() error {
	for _, path := range slices.Sorted(maps.Keys(k.Owners)) {
		owner := k.Owners[path]
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if ok && info.Mode().IsRegular() && (int(st.Uid) != owner.UID || int(st.Gid) != owner.GID) {
			if err := os.Lchown(path, owner.UID, owner.GID); err != nil {
				return err
			}
		}
		if mode := info.Mode(); mode.IsRegular() && owner.GroupReads && mode.Perm()&groupReads == 0 {
			if err := os.Chmod(path, mode.Perm()|groupReads); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeBinding comes before every file that follows from the bundle: whatever of them a crash leaves out, an older
// bundle is refused from here on, and this one completes them.
func (k *keeper) writeBinding() error {
	if k.Bundle == nil {
		if k.bound.Generation == 0 {
			k.need("binding", "missing or damaged")
		}
		return nil
	}
	next, err := k.Bundle.binding()
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("encode binding: %w", err)
	}
	parse := func(data []byte) error { _, err := parseBinding(data); return err }
	k.report.Generation = k.Bundle.Generation
	return k.put(managed{name: "binding", path: k.Files.Binding(), mode: secretMode, parse: parse}, append(data, '\n'))
}

// shareds writes the files that follow from the bundle or, without one, checks that they are there.
func (k *keeper) shareds() error {
	for _, m := range sharedFiles(k.Files) {
		if k.Owners[m.path].GroupReads {
			m.mode |= groupReads
		}
		if k.Bundle == nil {
			if err := k.check(m); err != nil {
				return err
			}
			continue
		}
		data, err := m.make(k.Bundle)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := k.put(m, data); err != nil {
			return err
		}
	}
	for _, a := range Authorities() {
		ca, _, err := k.trust(a)
		if err != nil {
			return err
		}
		if ca != nil {
			k.expires(string(a)+"-ca", ca.NotAfter)
		}
	}
	return nil
}

// check is what is left of put without a bundle. A file with other permissions serves, and is pending: others may
// have read the key, or changed the file.
func (k *keeper) check(m managed) error {
	data, mode, err := k.disk.read(m.path)
	if unread(err) {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	if err == nil {
		err = m.parse(data)
	}
	switch {
	case err == nil && mode.Perm() == m.mode:
	case err == nil:
		k.pending(m.name, modeReason(mode, m.mode))
	case m.volatile:
		k.pending(m.name, reasonOf(err))
	default:
		k.need(m.name, reasonOf(err))
	}
	return nil
}

// kubeconfigs follow from the configuration alone.
func (k *keeper) kubeconfigs() error {
	var changes []Change
	var files []durable.File
	for _, l := range Kubeconfigs() {
		data, err := kubeconfig(k.Files, l, k.Cluster)
		if err != nil {
			return err
		}
		m := managed{name: string(l) + ".kubeconfig", path: k.Files.Kubeconfig(l), mode: secretMode, parse: yamlOnly}
		reason, err := k.prepare(m, data)
		if err != nil {
			return err
		}
		if reason != "" {
			changes = append(changes, Change{m.name, reason})
			files = append(files, durable.File{Path: m.path, Data: data, Perm: m.mode})
		}
	}
	n, err := k.disk.write(files...)
	k.report.Changes = append(k.report.Changes, changes[:n]...)
	if err != nil {
		return fmt.Errorf("kubeconfigs: %w", err)
	}
	return nil
}

// put writes a file unless it holds these very bytes with these permissions.
func (k *keeper) put(m managed, data []byte) error {
	reason, err := k.prepare(m, data)
	if err != nil || reason == "" {
		return err
	}
	if _, err := k.disk.write(durable.File{Path: m.path, Data: data, Perm: m.mode}); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	k.report.Changes = append(k.report.Changes, Change{m.name, reason})
	return nil
}

// prepare says why a file has to be written; empty: it holds these very bytes with these permissions. What is not even
// of the file's kind is kept aside.
func (k *keeper) prepare(m managed, data []byte) (reason string, err error) {
	found, mode, err := k.disk.read(m.path)
	if unread(err) {
		return "", fmt.Errorf("%s: %w", m.name, err)
	}
	if err == nil && bytes.Equal(found, data) && mode.Perm() == m.mode {
		return "", nil
	}
	reason = "out of date"
	if err == nil && bytes.Equal(found, data) {
		reason = modeReason(mode, m.mode)
	}
	if err == nil {
		err = m.parse(found)
	}
	if err != nil {
		reason = reasonOf(err)
		if !errors.Is(err, fs.ErrNotExist) {
			if err := k.disk.aside(m.path); err != nil {
				return "", fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	return reason, nil
}

func modeReason(found, want fs.FileMode) string {
	return fmt.Sprintf("mode %#o, not %#o", found.Perm(), want)
}

func reasonOf(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "missing"
	}
	return err.Error()
}
