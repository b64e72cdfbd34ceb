package supervisor

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

func TestAGroupIsAliveAsLongAsAnyMemberIs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes")
	spec := childSpec(t, "it", "parent", file, "same")
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env, cmd.SysProcAttr = spec.Env, &syscall.SysProcAttr{}
	g := &processGroup{}
	g.join(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.joined(cmd.Process.Pid)
	eventually(t, "the grandchild runs", func() bool {
		return len(notes(t, file)) == 1 &&
			len(notes(t, file+".pid")) == 1
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if !g.alive() {
		t.Error("the group is taken for gone while the grandchild lives")
	}
	grandchild, _ := strconv.Atoi(notes(t, file+".pid")[0])
	if err := syscall.Kill(grandchild, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the group is gone", func() bool { return !g.alive() })
}

// TestAZombieDoesNotKeepAGroupAlive because it may never be reaped: that is the work of a stranger.
func TestAZombieDoesNotKeepAGroupAlive(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitExit(cmd.Process.Pid)
	if (&processGroup{leader: cmd.Process.Pid}).alive() {
		t.Error("a zombie counts as alive")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestMembersAreReadFromProcWhateverTheirName(t *testing.T) {
	for stat, want := range map[string]bool{
		"12 (a) S 1 77 77 0":        true,
		"12 (a) b) (Z) R 1 77 77 0": true,
		"12 (77 77 77) S 1 12 12 0": false,
		"12 (a) Z 1 77 77 0":        false,
		"12 (a) X 1 77 77 0":        false,
		"12 (a) T 1 77 77 0":        true,
		"":                          false,
		"12 (a) D 1 77 1":           true,
		"12 (a) D 1 none 1":         false,
	} {
		if got := livesInGroup([]byte(stat), 77); got != want {
			t.Errorf("%q: %t, want %t", stat, got, want)
		}
	}
}
