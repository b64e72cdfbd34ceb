package supervisor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// group holds all that one run starts.
type group interface {
	// join makes the new process start inside the group; joined tells the group its number.
	join(attr *syscall.SysProcAttr)
	joined(pid int)
	// limit puts limits in force before anything is inside, for a process of that niceness, and says which are not.
	limit(l Limits, nice int) (unlimited string)
	// kill sends SIGKILL to all, and may be called again. The first process must not have been reaped.
	kill() error
	// alive says whether anything lives, a zombie aside. When in doubt it says yes.
	alive() bool
	// close gives back what the group holds and says whether something in it was killed for want of memory.
	close() (outOfMemory bool)
}

// processGroup is what there is without cgroups. What calls setsid(2) leaves it.
type processGroup struct{ leader int }

func (g *processGroup) join(attr *syscall.SysProcAttr) { attr.Setpgid = true }
func (g *processGroup) joined(pid int)                 { g.leader = pid }
func (g *processGroup) limit(l Limits, _ int) string   { return without(l.asked(), errNoCgroup) }
func (g *processGroup) close() bool                    { return false }

func (g *processGroup) kill() error {
	err := unix.Kill(-g.leader, unix.SIGKILL)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// alive finds members that are not zombies: those wait for whoever adopted them, which may be nobody who cares.
func (g *processGroup) alive() bool {
	if errors.Is(unix.Kill(-g.leader, 0), unix.ESRCH) {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return true
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err == nil && livesInGroup(stat, g.leader) {
			return true
		}
	}
	return false
}

// livesInGroup reads /proc/PID/stat: number, name in parentheses (which may hold anything), state, parent, process
// group.
func livesInGroup(stat []byte, group int) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return false
	}
	number, err := strconv.Atoi(string(fields[2]))
	state := fields[0][0]
	return err == nil && number == group && state != 'Z' && state != 'X'
}

// awaitExit returns when the process has ended, and leaves it a zombie.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
