package systemd

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// cgroupRoots are where the hierarchy that systemd keeps its units in may be mounted.
var cgroupRoots = []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup"}

// unkilled are the processes in a cgroup that have SIGKILL pending. A process that can end has it for a moment only.
func unkilled(cgroup string) (all []kubeletwatch.Process) {
	if cgroup == "" {
		return nil
	}
	for _, root := range cgroupRoots {
		b, err := os.ReadFile(filepath.Join(root, cgroup, "cgroup.procs"))
		if err != nil {
			continue
		}
		for _, pid := range strings.Fields(string(b)) {
			if p := killPending(filepath.Join("/proc", pid)); p != nil {
				all = append(all, *p)
			}
		}
		break
	}
	return all
}

// killPending is the process of a folder of /proc if SIGKILL waits for it; nil: it does not, or it has gone.
func killPending(folder string) *kubeletwatch.Process {
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return nil
	}
	const sigkill = 1 << (unix.SIGKILL - 1)
	pending := false
	for line := range bytes.Lines(status) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "State":
			if strings.HasPrefix(value, "Z") || strings.HasPrefix(value, "X") {
				return nil // it has ended
			}
		case "SigPnd", "ShdPnd":
			mask, err := strconv.ParseUint(value, 16, 64)
			pending = pending || err == nil && mask&sigkill != 0
		}
	}
	pid, err := strconv.Atoi(filepath.Base(folder))
	if !pending || err != nil {
		return nil
	}
	return &kubeletwatch.Process{PID: pid, Started: startTicks(folder)}
}

// startTicks is when a process began, in the kernel's ticks; 0: it cannot be read.
func startTicks(folder string) uint64 {
	b, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return 0
	}
	// The name, in brackets, may hold anything; the start is the 20th field after it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return 0
	}
	ticks, _ := strconv.ParseUint(fields[19], 10, 64)
	return ticks
}

// Runs reports whether systemd is this machine's PID 1.
func Runs() bool {
	b, err := os.ReadFile("/proc/1/comm")
	return err == nil && strings.TrimSpace(string(b)) == "systemd"
}

// Monotonic is the time since the machine's boot by the clock of systemd's timestamps. A clock that is set does not
// change it. It stands still while the machine is suspended.
func Monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("systemd: the kernel has no CLOCK_MONOTONIC: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
