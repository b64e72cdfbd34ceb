package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An image says of which commit it is, and bakes copy what lies in the repository's folders.
func TestTheCommitOfAnImageSaysWhatIsNotInIt(t *testing.T) {
	lib, err := filepath.Abs(master + "lib.sh")
	if err != nil {
		t.Fatal(err)
	}
	repository := t.TempDir()
	in := func(args ...string) (string, error) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = repository
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	commit := func(word string) (string, error) {
		return in("env", "QUORATE_COMMIT="+word, "bash", "-euc", `. "$1"; c=$(commit); echo "$c"`, "bash", lib)
	}
	if got, err := commit(""); got != "unknown" || err != nil {
		t.Errorf("without a repository: %q, %v", got, err)
	}
	for _, script := range []string{"git init -q", "mkdir -p images/master systemd/units",
		"echo /images/master/ignored >.gitignore; touch images/master/manifest systemd/units/x.service; git add .",
		"git -c user.name=x -c user.email=x@example.com commit -qm x"} {
		if out, err := in("sh", "-c", script); err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
	}
	clean, err := in("git", "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := commit(""); got != clean || err != nil {
		t.Errorf("a clean repository: %q, %v; want %s", got, err, clean)
	}
	for _, name := range []string{"images/master/new", "images/master/ignored", "new.go"} {
		path := filepath.Join(repository, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := commit(""); got != clean+"-dirty" || err != nil {
			t.Errorf("with %s, which git does not track: %q, %v; want %s-dirty", name, got, err, clean)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := commit("v1.2+site"); got != "v1.2+site" || err != nil {
		t.Errorf("a commit that was given: %q, %v", got, err)
	}
	if got, err := commit(`a"b`); err == nil || !strings.Contains(got, `QUORATE_COMMIT is 'a"b': want letters`) {
		t.Errorf("one that would break image.json: %q, %v", got, err)
	}
}
