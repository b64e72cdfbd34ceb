package supervisor

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// folder is a folder in place of a cgroup, with the kernel's files as the test wants them.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestACgroupIsAliveUnlessTheKernelSaysThatItIsEmpty(t *testing.T) {
	for events, want := range map[string]bool{
		"populated 1\nfrozen 0\n": true,
		"populated 0\nfrozen 0\n": false,
		"frozen 0\n":              true,
		"populated ?\n":           true,
		"":                        true,
	} {
		g := &cgroup{dir: folder(t, map[string]string{"cgroup.events": events})}
		if g.alive() != want {
			t.Errorf("%q: alive %t", events, !want)
		}
	}
	if (&cgroup{dir: filepath.Join(t.TempDir(), "none")}).alive() {
		t.Error("a cgroup that is not there is alive")
	}
}

func TestNothingIsStartedBesideAFormerRunThatDoesNotDie(t *testing.T) {
	dir := folder(t, map[string]string{"cgroup.events": "populated 1\n", "cgroup.procs": "4711\n4712\n",
		"cgroup.kill": ""})
	begun := time.Now()
	_, err := openCgroup(dir)
	expectError(t, "the launch", err, "a former run is still alive", "although it was killed: pids 4711 4712")
	if took := time.Since(begun); took < formerPatience {
		t.Errorf("given up after %s, want %s", took, formerPatience)
	}
	if killed, err := os.ReadFile(filepath.Join(dir, "cgroup.kill")); err != nil || string(killed) != "1" {
		t.Errorf("it was not killed: %q, %v", killed, err)
	}
}
