package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheOwnCgroupIsFoundWhereverItIsMounted(t *testing.T) {
	const v1 = "34 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	for name, c := range map[string]struct{ membership, mounts, want string }{
		"a unit": {"0::/system.slice/quorate.service\n",
			"30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
			"/sys/fs/cgroup/system.slice/quorate.service"},
		"beside version 1": {"9:memory:/x\n0::/a\n",
			v1 + "35 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"/sys/fs/cgroup/unified/a"},
		"a part is mounted": {"0::/vm1/system.slice/x\n", "35 30 0:30 /vm1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"/sys/fs/cgroup/system.slice/x"},
		"another part is mounted": {"0::/vm1/x\n", "35 30 0:30 /vm2 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", ""},
		"version 1 only":          {"9:memory:/x\n", v1, ""},
		"nothing is mounted":      {"0::/a\n", v1, ""},
	} {
		got, err := cgroupDir(c.membership, c.mounts)
		if got != c.want || (c.want == "") != errors.Is(err, ErrNotDelegated) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// TestADelegatedCgroupIsFoundAndPrepared puts a child into a cgroup with systemd's mark.
func TestADelegatedCgroupIsFoundAndPrepared(t *testing.T) {
	for _, c := range []struct {
		name   string
		marked bool
		want   func(dir string) string
	}{
		{"marked", true, func(dir string) string { return "found " + dir + "\nfound " + dir + "\nin " + leaf + "\n" }},
		{"not marked", false, func(string) string { return "none\n" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := testCgroup(t)
			if c.marked {
				if err := unix.Setxattr(dir, "trusted.delegate", []byte("1"), 0); err != nil {
					t.Skipf("cgroups carry no marks here: %v", err)
				}
			}
			fd, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer fd.Close()
			cmd := exec.Command(os.Args[0], "delegated")
			cmd.Env = []string{childMark}
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
			out, err := cmd.CombinedOutput()
			if want := c.want(dir); err != nil || string(out) != want {
				t.Errorf("%v: %q, want %q", err, out, want)
			}
		})
	}
}

// delegatedMain is the child: a supervisor that starts, and one that is started again from where the first one is.
func delegatedMain() {
	for range 2 {
		dir, err := DelegatedCgroup()
		if errors.Is(err, ErrNotDelegated) {
			fmt.Println("none")
			os.Exit(0)
		}
		if err == nil {
			_, err = PrepareCgroup(dir)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("found", dir)
	}
	own, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(own)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			fmt.Println("in", filepath.Base(rest))
		}
	}
	os.Exit(0)
}

func TestWhatTheKernelHasIsAccountedFor(t *testing.T) {
	dir := folder(t, map[string]string{"cgroup.controllers": "cpuset cpu io memory hugetlb pids\n"})
	on, err := distribute(dir)
	if want := []string{"cpu", "memory", "pids"}; !slices.Equal(on, want) || err != nil {
		t.Errorf("on: %q, %v", on, err)
	}
	if err := os.Remove(filepath.Join(dir, "cgroup.subtree_control")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "cgroup.subtree_control"), 0o755); err != nil {
		t.Fatal(err)
	}
	on, err = distribute(dir)
	expectError(t, "a kernel that refuses", err, "account for cpu in", "account for memory in")
	if len(on) > 0 {
		t.Errorf("on: %q", on)
	}
	if on, err := distribute(folder(t, map[string]string{"cgroup.controllers": "\n"})); len(on) > 0 || err != nil {
		t.Errorf("none: %q, %v", on, err)
	}
}

// with a folder in place of a cgroup: not every kernel accounts here
func TestWantOfMemoryIsReadFromTheCgroup(t *testing.T) {
	dir := t.TempDir()
	write := func(kills int) {
		text := fmt.Sprintf("low 0\nhigh 0\nmax 12\noom %d\noom_kill %d\noom_group_kill 0\n", kills+7, kills)
		if err := os.WriteFile(filepath.Join(dir, "memory.events"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := oomKills(dir); n != 0 {
		t.Errorf("without the file: %d", n)
	}
	write(2)
	g := &cgroup{dir: dir, oomKills: oomKills(dir)}
	if g.close() {
		t.Error("kills of before the run are its own")
	}
	write(3)
	if !g.close() {
		t.Error("a kill during the run is not seen")
	}
}
