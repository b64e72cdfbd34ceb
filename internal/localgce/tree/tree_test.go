package tree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// A bake's own list spares the reading, unless the archive is younger.
func TestTheHashIsTakenFromTheBakesList(t *testing.T) {
	cache, tar := t.TempDir(), archive(t, "one")
	claimed := strings.Repeat("0a", 32)
	list := filepath.Join(filepath.Dir(tar), "SHA256SUMS")
	if err := os.WriteFile(list, []byte(claimed+"  root.tar\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if opened, _ := open(t, cache, tar); filepath.Base(opened.Path) != "root-"+claimed {
		t.Errorf("the list says %s, and the tree is %s", claimed, opened.Path)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(tar, later, later); err != nil {
		t.Fatal(err)
	}
	if opened, _ := open(t, cache, tar); filepath.Base(opened.Path) == "root-"+claimed {
		t.Error("an archive that is younger than the list has the list's hash")
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
	for path, want := range map[string]bool{held.Path: true, recent.Path: true, idle.Path: false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v; there: want %t", path, err, want)
		}
	}
}
