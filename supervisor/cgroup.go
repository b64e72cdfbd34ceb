package supervisor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroup is a group that nothing can leave: a cgroup2 folder of one run.
type cgroup struct {
	dir      string
	fd       *os.File // until the process has started
	oomKills int      // before the run
}

// formerPatience is how long what a former supervisor left behind may take to be gone after it was killed.
const formerPatience = 2 * time.Second

// openCgroup makes an empty cgroup. What lives in one of that name is of a supervisor that is dead, and is killed;
// while any of it is there nothing new is started.
func openCgroup(dir string) (*cgroup, error) {
	if err := clearCgroup(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make its cgroup: %w", err)
	}
	fd, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open its cgroup: %w", err)
	}
	return &cgroup{dir: dir, fd: fd, oomKills: oomKills(dir)}, nil
}

// clearCgroup removes the cgroup and those below it, killing what lives there.
func clearCgroup(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	g := &cgroup{dir: dir}
	for begin := time.Now(); g.alive(); time.Sleep(5 * time.Millisecond) {
		if err := g.kill(); err != nil {
			return fmt.Errorf("end its former run: %w", err)
		}
		if time.Since(begin) > formerPatience {
			return fmt.Errorf("a former run is still alive in %s although it was killed: pids %s", dir, g.pids())
		}
	}
	removeCgroup(dir)
	return nil
}

func (g *cgroup) join(attr *syscall.SysProcAttr) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(g.fd.Fd())
}

func (g *cgroup) joined(int) { g.closeFD() }

func (g *cgroup) closeFD() {
	if g.fd != nil {
		g.fd.Close()
		g.fd = nil
	}
}

func (g *cgroup) kill() error {
	return os.WriteFile(filepath.Join(g.dir, "cgroup.kill"), []byte("1"), 0)
}

// alive reads the kernel's own word. A cgroup that is not there holds nothing, because one with processes cannot be
// removed.
func (g *cgroup) alive() bool {
	n, err := keyed(filepath.Join(g.dir, "cgroup.events"), "populated")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return false
	}
	return err != nil || n != 0
}

func (g *cgroup) close() bool {
	g.closeFD()
	outOfMemory := oomKills(g.dir) > g.oomKills
	removeCgroup(g.dir) // each run begins with counters at zero
	return outOfMemory
}

// pids names what lives in the cgroup and below it, for a person.
func (g *cgroup) pids() string {
	var all []string
	_ = filepath.WalkDir(g.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			data, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			all = append(all, strings.Fields(string(data))...)
		}
		return nil
	})
	return strings.Join(all, " ")
}

// oomKills is how often the kernel has killed in the cgroup for want of memory; 0 where memory is not accounted for.
func oomKills(dir string) int {
	n, _ := keyed(filepath.Join(dir, "memory.events"), "oom_kill")
	return n
}

// keyed reads a number from a file of lines "key number".
func keyed(path, key string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if name, value, _ := strings.Cut(lines.Text(), " "); name == key {
			return strconv.Atoi(value)
		}
	}
	return 0, fmt.Errorf("read %s: it has no line %q", path, key)
}

// removeCgroup removes an empty cgroup, those below it first, since a process may have made some. What stays, stays:
// the next start uses it.
func removeCgroup(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() {
			removeCgroup(filepath.Join(dir, entry.Name()))
		}
	}
	_ = os.Remove(dir)
}
