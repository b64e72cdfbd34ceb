package cgroup

import (
	"strings"
	"testing"
)

func TestASystemdVMNeedsControllers(t *testing.T) {
	lacks := func(mounts string, unified ...string) []string {
		return missingControllers(hierarchiesIn(mounts), unified)
	}
	const unified = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"
	const hybrid = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n" +
		"cgroup /sys/fs/cgroup/systemd cgroup rw,nosuid,xattr,release_agent=/lib/x,name=systemd 0 0\n" +
		"cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n" +
		"cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset,clone_children 0 0\n" +
		"cgroup /sys/fs/cgroup/devices cgroup rw,devices 0 0\ncgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n" +
		"cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n"
	if missing := lacks(unified, "cpu", "cpuset", "io", "memory", "pids"); len(missing) > 0 {
		t.Errorf("cgroup2 alone: %q", missing)
	}
	if missing := strings.Join(lacks(hybrid, "memory"), "\n"); strings.Count(missing, "\n") > 0 ||
		!strings.Contains(missing, "cgroup controller memory") {
		t.Errorf("version 1 without memory: %q", missing)
	}
	if missing := lacks(unified); len(missing) != 4 {
		t.Errorf("cgroup2 without controllers: %q", missing)
	}
}
