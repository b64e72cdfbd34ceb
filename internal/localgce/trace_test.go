package localgce_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// traces are the things of localgce's that the machine has: named network namespaces, links, cgroups, attached disks, host mounts,
// processes. Those of other projects come and go while tests run beside each other, so only what a test's own project adds may count:
// traces are compared by name, and names are made of the state folder.
func traces(t *testing.T) (list []string) {
	t.Helper()
	for _, pattern := range []string{"/run/netns/lgce-*", "/sys/fs/cgroup/lgce-*", "/sys/fs/cgroup/unified/lgce-*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		list = append(list, "link "+l.Name)
	}
	list = append(list, fileLines(t, "route ", "/proc/net/route")...)
	list = append(list, fileLines(t, "mount ", "/proc/self/mounts")...)
	backing, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range backing {
		if b, err := os.ReadFile(f); err == nil {
			list = append(list, "disk "+strings.TrimSpace(string(b)))
		}
	}
	return list
}

func fileLines(t *testing.T, prefix, path string) (list []string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		list = append(list, prefix+strings.TrimSpace(line))
	}
	return list
}

// compareTraces fails the test for what is there and was not.
func compareTraces(t *testing.T, before []string) {
	t.Helper()
	for _, now := range traces(t) {
		if !slices.Contains(before, now) {
			t.Errorf("left behind: %s", now)
		}
	}
}
