package tree_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/tree"
)

// archive makes a tar file with one file in it.
func archive(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "root.tar")
	if out, err := exec.Command("tar", "-C", dir, "-cf", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func open(t *testing.T, cache, archive string) (_ *tree.Tree, unpacked bool) {
	t.Helper()
	opened, err := tree.Open(t.Context(), cache, archive, func() { unpacked = true })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	return opened, unpacked
}

func TestATreeIsUnpackedOnce(t *testing.T) {
	cache, tar := filepath.Join(t.TempDir(), "cache"), archive(t, "one")
	first, unpacked := open(t, cache, tar)
	if b, err := os.ReadFile(filepath.Join(first.Path, "file")); string(b) != "one" || !unpacked {
		t.Errorf("the tree holds %q (%v), unpacked %t", b, err, unpacked)
	}
	if info, err := os.Stat(filepath.Join(first.Path, "file")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if second, unpacked := open(t, cache, tar); second.Path != first.Path || unpacked {
		t.Errorf("opened again: %s, unpacked %t; the first is %s", second.Path, unpacked, first.Path)
	}
	if other, _ := open(t, cache, archive(t, "two")); other.Path == first.Path {
		t.Error("another archive has the same tree")
	}
}

// The hashes that lie beside an archive may be another's: a crash in the middle of a bake, or a copy that keeps the
// time of an older file.
func TestATreeIsNamedForWhatWasRead(t *testing.T) {
	cache, tar := t.TempDir(), archive(t, "one")
	first, _ := open(t, cache, tar)
	list := filepath.Join(filepath.Dir(tar), "SHA256SUMS")
	sum := strings.TrimPrefix(filepath.Base(first.Path), "root-")
	if err := os.WriteFile(list, []byte(sum+"  root.tar\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(archive(t, "two"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tar, content, 0o644); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(tar, old, old); err != nil {
		t.Fatal(err)
	}
	second, unpacked := open(t, cache, tar)
	want := fmt.Sprintf("root-%x", sha256.Sum256(content))
	if b, err := os.ReadFile(filepath.Join(second.Path, "file")); string(b) != "two" || err != nil || !unpacked {
		t.Errorf("the tree of another archive in the same place holds %q (%v)", b, err)
	}
	if got := filepath.Base(second.Path); got != want {
		t.Errorf("its tree is %s, want %s", got, want)
	}
}

func TestACopyOfAnArchiveHasTheSameTree(t *testing.T) {
	cache := t.TempDir()
	tar := archive(t, "one")
	first, _ := open(t, cache, tar)
	content, err := os.ReadFile(tar)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "copy.tar")
	if err := os.WriteFile(other, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if second, unpacked := open(t, cache, other); second.Path != first.Path || unpacked {
		t.Errorf("the copy's tree is %s, unpacked %t; the first is %s", second.Path, unpacked, first.Path)
	}
}

func TestOnlyTheOwnerEntersTheCache(t *testing.T) {
	cache := t.TempDir()
	if err := os.Chmod(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, cache, archive(t, "one"))
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache's mode is %v, %v", info.Mode(), err)
	}
}

func TestWhoWaitsForAnotherProcessGivesUpWithItsContext(t *testing.T) {
	cache, tar := t.TempDir(), archive(t, "one")
	lock, err := os.Create(filepath.Join(cache, "root.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, err := tree.Open(ctx, cache, tar, func() {})
		result <- err
	}()
	select {
	case err := <-result:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it is deaf to its context")
	}
}

// A tree is there whole or not at all: what an interrupted run has left counts for nothing.
func TestAnArchiveThatIsCutShortLeavesNoTree(t *testing.T) {
	cache, tar := t.TempDir(), archive(t, strings.Repeat("long", 10000))
	if err := os.Truncate(tar, 8192); err != nil {
		t.Fatal(err)
	}
	_, err := tree.Open(t.Context(), cache, tar, func() {})
	if err == nil || !strings.Contains(err.Error(), "unpack "+tar) {
		t.Errorf("an archive that ends in the middle: %v", err)
	}
	if list, _ := filepath.Glob(filepath.Join(cache, "root[-.p]*")); len(list) > 1 { // the lock
		t.Errorf("left behind: %q", list)
	}
	if err := os.MkdirAll(filepath.Join(cache, "root.part", "half"), 0o755); err != nil {
		t.Fatal(err)
	}
	whole, _ := open(t, cache, archive(t, "one"))
	if _, err := os.Stat(filepath.Join(whole.Path, "half")); err == nil {
		t.Error("the tree holds what an interrupted run has left")
	}
}

func TestOldTreesGoWhenNobodyHoldsThem(t *testing.T) {
	cache := t.TempDir()
	let := func(tree *tree.Tree) string {
		tree.Close()
		return tree.Path
	}
	held, _ := open(t, cache, archive(t, "held"))
	idle, _ := open(t, cache, archive(t, "idle"))
	recent, _ := open(t, cache, archive(t, "recent"))
	let(recent)
	long := time.Now().Add(-8 * 24 * time.Hour)
	for _, path := range []string{held.Path, let(idle)} {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	open(t, cache, archive(t, "new"))
	if links, _ := filepath.Glob(filepath.Join(cache, "read-*")); len(links) != 3 {
		t.Errorf("what notes a tree: %q, want three", links)
	}
	for path, want := range map[string]bool{held.Path: true, recent.Path: true, idle.Path: false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v; there: want %t", path, err, want)
		}
	}
}
