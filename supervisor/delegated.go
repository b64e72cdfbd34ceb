package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNotDelegated says that this process has no cgroup2 folder of its own to divide: processes run in process groups
// then.
var ErrNotDelegated = errors.New("no cgroup is delegated to this process")

// leaf is where the supervisor itself lives below the delegated cgroup. No process's name begins with a dot.
const leaf = ".supervisor"

// DelegatedCgroup returns the cgroup2 folder that systemd has delegated to the unit of this process (Delegate=yes),
// which is what belongs into Config.Cgroup after PrepareCgroup. ErrNotDelegated, with what is missing, where there is
// none: not under systemd, a unit without Delegate, or a kernel before 5.14, which has no cgroup.kill.
func DelegatedCgroup() (string, error) {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("find the own cgroup: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find the own cgroup: %w", err)
	}
	dir, err := cgroupDir(string(membership), string(mounts))
	if err != nil {
		return "", err
	}
	if filepath.Base(dir) == leaf {
		dir = filepath.Dir(dir)
	}
	if !delegated(dir) {
		return "", fmt.Errorf("%w: %s does not carry systemd's mark; the unit needs Delegate=yes", ErrNotDelegated, dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil {
		return "", fmt.Errorf("%w: %w; the kernel must be 5.14 or newer", ErrNotDelegated, err)
	}
	return dir, nil
}

// PrepareCgroup moves this process into a leaf of the delegated cgroup and switches accounting on for its neighbors:
// memory, processes, processors. The kernel demands the first for the second: a cgroup with such accounting below it
// holds no processes itself. It returns which controllers are on: none where the machine has them in version 1. After
// an error children can be started in cgroups nevertheless; just their limits are not in force.
func PrepareCgroup(dir string) (controllers []string, err error) {
	own := filepath.Join(dir, leaf)
	if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make the supervisor's own cgroup: %w", err)
	}
	if err := os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return nil, fmt.Errorf("move the supervisor into its own cgroup: %w", err)
	}
	controllers, err = distribute(dir)
	if slices.Contains(controllers, "cpu") {
		err = errors.Join(err, weighByNiceness(own))
	}
	return controllers, err
}

// distribute switches the accounting of memory, processes and processors on for the cgroups below dir, as far as the
// kernel has the controllers there, and returns which are on.
func distribute(dir string) (on []string, err error) {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("see what can be accounted for: %w", err)
	}
	var errs []error
	for _, controller := range strings.Fields(string(available)) {
		if !slices.Contains([]string{"cpu", "memory", "pids"}, controller) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0); err != nil {
			errs = append(errs, fmt.Errorf("account for %s in %s: %w", controller, dir, err))
			continue
		}
		on = append(on, controller)
	}
	return on, errors.Join(errs...)
}

// weighByNiceness gives the supervisor's own cgroup the weight of its niceness.
func weighByNiceness(own string) error {
	nice, err := niceness(0)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(own, "cpu.weight.nice"), []byte(strconv.Itoa(nice)), 0)
}

// delegated reads the mark that systemd leaves: readable by root on all versions, and by all from version 251 on.
func delegated(dir string) bool {
	for _, mark := range []string{"trusted.delegate", "user.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, mark, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// cgroupDir finds the folder of the own cgroup from the texts of /proc/self/cgroup (line "0::PATH") and
// /proc/self/mountinfo. In a cgroup namespace both speak of the namespace's root.
func cgroupDir(membership, mounts string) (string, error) {
	path, found := "", false
	for line := range strings.Lines(membership) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path, found = rest, true
		}
	}
	if !found {
		return "", fmt.Errorf("%w: /proc/self/cgroup has no line of version 2", ErrNotDelegated)
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ") // fields, then the type of the file system
		fields := strings.Fields(before)
		if len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		root, mountPoint := fields[3], fields[4]
		below, err := filepath.Rel(root, path)
		if err == nil && below != ".." && !strings.HasPrefix(below, "../") {
			return filepath.Join(mountPoint, below), nil
		}
	}
	return "", fmt.Errorf("%w: no cgroup2 is mounted that holds %s", ErrNotDelegated, path)
}
