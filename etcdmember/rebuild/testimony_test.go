package rebuild

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A path that was mistyped, or a disk that is not mounted, must not be heard as "this disk is empty": the rebuilding
// would go on without what it holds.
func TestOnlyADiskThatIsThereTestifies(t *testing.T) {
	dir := t.TempDir()
	for name, file := range map[string]string{"empty": "", "member": "agent.json", "log": "etcd/member/x"} {
		path := filepath.Join(dir, name, file)
		if err := os.MkdirAll(filepath.Join(dir, name, filepath.Dir(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if file != "" {
			if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// a mount point of every Linux, and nobody's data disk
	if err := os.Symlink("/proc", filepath.Join(dir, "mounted")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, wanted string
		there        bool
	}{
		{"absent", "", false}, {"absent", "data", false}, {"member/agent.json", "", false},
		{"empty", "", true}, {"empty", "data", false}, {"mounted", "data", true},
		{"member", "data", true}, {"log", "data", true},
	} {
		_, err := Testify(t.Context(), filepath.Join(dir, c.path), c.wanted, filepath.Join(dir, "no.sock"))
		if c.there != (err == nil) || !c.there && !errors.Is(err, ErrNoDisk) {
			t.Errorf("%s, disk %q wanted: %v: want it to testify: %v", c.path, c.wanted, err, c.there)
		}
	}
}
