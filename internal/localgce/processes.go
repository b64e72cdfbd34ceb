package localgce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// PauseVM stops each process of a VM (SIGSTOP), as the last moment of a live migration does: connections stay, and its kernel still takes
// new ones. FreezeVM silences it too.
func (p *Project) PauseVM(_ context.Context, name string) error { return p.setPaused(name, true) }

// ResumeVM ends PauseVM.
func (p *Project) ResumeVM(_ context.Context, name string) error { return p.setPaused(name, false) }

func (p *Project) setPaused(name string, paused bool) error {
	return p.operate(name, statusRunning, func(v *vm) error {
		if v.paused == paused {
			return &StateError{Name: name, Is: map[bool]string{true: "paused", false: "not paused"}[paused], Wanted: "otherwise"}
		}
		sig := map[bool]unix.Signal{true: unix.SIGSTOP, false: unix.SIGCONT}[paused]
		signalled := map[int]bool{}
		for more := true; more; { // a process may have made another before it stopped
			pids, err := p.processes(v)
			if err != nil {
				return fmt.Errorf("pause or resume %s: %w", name, err)
			}
			more = false
			for _, pid := range pids {
				if !signalled[pid] {
					signalled[pid], more = true, true
					_ = unix.Kill(pid, sig) // it may have ended
				}
			}
		}
		p.mu.Lock()
		v.paused = paused
		p.mu.Unlock()
		return nil
	})
}

// SignalProcess sends a signal, such as KILL or STOP, to those processes of a VM whose program has the name, or that have the name
// among their first three words ("agent" and "run-etcd" are one program), and says how many they were. None is an error.
func (p *Project) SignalProcess(name, process, signal string) (n int, err error) {
	sig := unix.SignalNum("SIG" + strings.TrimPrefix(signal, "SIG"))
	if sig == 0 {
		return 0, fmt.Errorf("signal %q: a name such as KILL, STOP, CONT or TERM is needed", signal)
	}
	err = p.operate(name, statusRunning, func(v *vm) error {
		pids, err := p.processes(v)
		if err != nil {
			return err
		}
		for _, pid := range pids {
			if pid != v.machine.cmd.Process.Pid && isProgram(pid, process) && unix.Kill(pid, sig) == nil {
				n++
			}
		}
		if n == 0 {
			return fmt.Errorf("no process of %s is named %q", name, process)
		}
		return nil
	})
	return n, err
}

// isProgram says whether a process is the one that is meant.
func isProgram(pid int, process string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	args := strings.Split(string(b), "\x00")
	return filepath.Base(args[0]) == process || slices.Contains(args[1:min(3, len(args))], process)
}

// processes are the pids of all that run in a VM, as the host numbers them.
func (p *Project) processes(v *vm) (pids []int, err error) {
	err = filepath.WalkDir(p.vmCgroup(v.Slot), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return ignoreAbsent(err)
		}
		b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, line := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return ignoreAbsent(err)
	})
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return pids, nil
}

// ignoreAbsent lets a cgroup go that has vanished while it was looked at.
func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
