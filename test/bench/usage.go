package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usage is what one process of a replica uses while nothing happens.
type usage struct {
	VM string `json:"vm"`
	// Name is agent or etcd.
	Name string `json:"name"`
	// RSS is all resident memory, and File the part of it that is the program's own file in the page cache, which its
	// processes share and the kernel takes back when it needs to.
	RSS  mebibytes `json:"rss"`
	File mebibytes `json:"file"`
	// CPU is in percent of one core.
	CPU float64 `json:"cpu"`
}

// usage boots three replicas, leaves them alone, and measures what each agent and each etcd child uses.
func (b *bench) usage(ctx context.Context) ([]usage, error) {
	w, err := b.quorateWorld(ctx, 3)
	if err != nil {
		return nil, err
	}
	project, _, err := boot(ctx, w, true)
	if err != nil {
		return nil, err
	}
	defer project.Close(context.WithoutCancel(ctx))
	b.say("three replicas settle for %s, then their agents are watched for %s", b.settle, b.watch)
	if err := sleep(ctx, b.settle); err != nil {
		return nil, err
	}
	var pids []int
	var out []usage
	for _, vm := range project.Status().VMs {
		for name, words := range map[string][]string{"agent": {"quorate", "agent"}, "etcd": {"quorate", "run-etcd"}} {
			pid, err := descendant(vm.InitPID, words...)
			if err != nil {
				return nil, fmt.Errorf("find the %s of %s: %w", name, vm.Name, err)
			}
			pids, out = append(pids, pid), append(out, usage{VM: vm.Name, Name: name})
		}
	}
	before, begin := make([]time.Duration, len(pids)), time.Now()
	for i, pid := range pids {
		if before[i], err = cpuOf(pid); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, b.watch); err != nil {
		return nil, err
	}
	for i, pid := range pids {
		after, err := cpuOf(pid)
		if err != nil {
			return nil, err
		}
		out[i].CPU = 100 * (after - before[i]).Seconds() / time.Since(begin).Seconds()
		if out[i].RSS, out[i].File, err = memoryOf(pid); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b usage) int { return strings.Compare(a.Name+a.VM, b.Name+b.VM) })
	return out, nil
}

// descendant is the process of a VM whose program's name and first argument are these. A VM's processes are found by
// their mount namespace.
func descendant(initPID int, words ...string) (int, error) {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", initPID))
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
		args := bytes.Split(text, []byte{0})
		if err != nil || len(args) < len(words) || filepath.Base(string(args[0])) != words[0] ||
			string(args[1]) != words[1] {
			continue
		}
		if s, err := os.Readlink(dir + "/ns/mnt"); err == nil && s == space {
			return strconv.Atoi(filepath.Base(dir))
		}
	}
	return 0, fmt.Errorf("no process %q runs there", words)
}

// clockTick is the unit of /proc/PID/stat, fixed in the kernel's interface.
const clockTick = time.Second / 100

// cpuOf is the time that a process has had a core, without its children.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses that may hold anything; utime and stime are fields 14 and 15.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read /proc/%d/stat: %d fields", pid, len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, err
}

// memoryOf is what of a process is in memory, and what of that is files.
func memoryOf(pid int) (rss, file mebibytes, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		number, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
		switch key {
		case "VmRSS":
			rss = mebibytes(number / 1024)
		case "RssFile":
			file = mebibytes(number / 1024)
		}
	}
	if rss == 0 {
		return 0, 0, fmt.Errorf("read /proc/%d/status: no VmRSS", pid)
	}
	return rss, file, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
