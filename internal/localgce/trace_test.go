package localgce_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/localgce"
)

// traces are what the machine has of the project of a state folder: network namespaces, cgroups, links, routes, mounts,
// attached disks, processes. Other projects come and go while tests run in parallel.
func traces(t *testing.T, state string) (list []string) {
	t.Helper()
	fabric, link := localgce.FabricAndLink(state)
	for _, folder := range []string{"/run/", "/run/netns/", "/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, err := filepath.Glob(folder + fabric + "*")
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
		if l.Name == link {
			list = append(list, "link "+link)
		}
	}
	list = append(list, lines(t, "/proc/net/route", link)...)
	list = append(list, lines(t, "/proc/self/mounts", state)...)
	list = append(list, lines(t, "/proc/self/mounts", fabric)...)
	disks, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, d := range disks {
		list = append(list, lines(t, d, state)...)
		list = append(list, lines(t, d, "/"+fabric+"/")...)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, p := range processes {
		for _, line := range lines(t, p, fabric) {
			// Only a zombie is in a cgroup that is gone: the machine's pid 1 may take its time to reap it.
			if !strings.HasSuffix(line, "(deleted)") {
				list = append(list, line)
			}
		}
	}
	return list
}

// lines are a file's lines that hold a text. A file that has just vanished has none.
func lines(t *testing.T, path, text string) (list []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, text) {
			list = append(list, path+": "+strings.TrimSpace(line))
		}
	}
	return list
}

// wantNoTraces fails the test for each trace.
func wantNoTraces(t *testing.T, state string) {
	t.Helper()
	for _, trace := range traces(t, state) {
		t.Errorf("left behind: %s", trace)
	}
}
