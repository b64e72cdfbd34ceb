// Package proc reads from the host's /proc what processes of a VM use: their time on a core, their memory, and how
// often they woke up.
package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Find is the process of the VM with that pid 1 whose program's name and further arguments begin with these words. A
// VM's processes are found by their pid namespace: those of a unit may have files of their own.
func Find(initPID int, words ...string) (int, error) {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", initPID))
	if err != nil {
		return 0, err
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, line := range lines {
		dir := filepath.Dir(line)
		text, err := os.ReadFile(line)
		if err != nil || !begins(strings.Split(string(text), "\x00"), words) {
			continue
		}
		if s, err := os.Readlink(dir + "/ns/pid"); err == nil && s == space {
			return strconv.Atoi(filepath.Base(dir))
		}
	}
	return 0, fmt.Errorf("no process %q runs there", words)
}

func begins(args, words []string) bool {
	if len(args) < len(words) {
		return false
	}
	for i, word := range words {
		if arg := args[i]; arg != word && (i > 0 || filepath.Base(arg) != word) {
			return false
		}
	}
	return true
}

// clockTick is the unit of /proc/PID/stat, fixed in the kernel's interface.
const clockTick = time.Second / 100

// CPU is the time that a process has had a core, without its children.
func CPU(pid int) (time.Duration, error) { return ticks(pid, utime, stime) }

// CPUWithChildren counts the children that it has waited for, too.
func CPUWithChildren(pid int) (time.Duration, error) { return ticks(pid, utime, stime, cutime, cstime) }

// Fields of /proc/PID/stat, counted from the one after the name.
const utime, stime, cutime, cstime = 11, 12, 13, 14

func ticks(pid int, which ...int) (sum time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses that may hold anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, i := range which {
		if len(fields) <= i {
			return 0, fmt.Errorf("read /proc/%d/stat: %d fields", pid, len(fields))
		}
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * clockTick
	}
	return sum, nil
}

// Memory is what of a process is in memory, and what of that is files, in MiB.
func Memory(pid int) (rss, file float64, err error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	found, err := fieldsOf(path)
	if err != nil {
		return 0, 0, err
	}
	rss, file = found["VmRSS"]/1024, found["RssFile"]/1024
	if rss == 0 {
		return 0, 0, fmt.Errorf("read %s: no VmRSS", path)
	}
	return rss, file, nil
}

// Wakeups is how often the threads of a process have gone to sleep, and so have woken up. Threads that ended count no
// more.
func Wakeups(pid int) (n float64, err error) {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/status", pid))
	if err != nil || len(paths) == 0 {
		return 0, fmt.Errorf("process %d has gone: %v", pid, err)
	}
	for _, path := range paths {
		if found, err := fieldsOf(path); err == nil {
			n += found["voluntary_ctxt_switches"]
		}
	}
	return n, nil
}

// fieldsOf are the numbers of a status file by their names.
func fieldsOf(path string) (map[string]float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if fields := strings.Fields(value); len(fields) > 0 {
			if n, err := strconv.ParseFloat(fields[0], 64); err == nil {
				found[key] = n
			}
		}
	}
	return found, nil
}
