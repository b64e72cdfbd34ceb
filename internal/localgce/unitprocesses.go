package localgce

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func (u *unit) spawn() (int, error) {
	cgroup, err := os.Open(unitCgroup)
	if err != nil {
		return 0, err
	}
	defer cgroup.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	env := append([]string{"PATH=" + searchPath, "LANG=C.UTF-8", "NOTIFY_SOCKET=" + notifyPath}, u.agent.Env...)
	if u.interval > 0 {
		// WATCHDOG_PID is left out: it cannot be known before the fork, and without it the main process is meant.
		env = append(env, "WATCHDOG_USEC="+strconv.FormatInt(u.interval.Microseconds(), 10))
	}
	return syscall.ForkExec(u.agent.Command[0], u.agent.Command, &syscall.ProcAttr{
		Dir: "/", Env: env, Files: []uintptr{null.Fd(), 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(cgroup.Fd())},
	})
}

// reap takes in all dead children and says whether the agent was among them.
func (u *unit) reap() (agent unix.WaitStatus, dead bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return agent, dead
		}
		if pid == u.status.PID {
			agent, dead = status, true
		}
	}
}

// killAll kills every process of the VM but init, and returns when only init is left.
func (u *unit) killAll() {
	for {
		_ = unix.Kill(-1, unix.SIGKILL)
		u.reap()
		if others, err := otherProcesses(); err != nil || others == 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func otherProcesses() (n int, err error) {
	entries, err := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != 1 {
			n++
		}
	}
	return n, err
}

func describeExit(s unix.WaitStatus) string {
	if s.Signaled() {
		return "signal " + unix.SignalName(s.Signal())
	}
	return "exit status " + strconv.Itoa(s.ExitStatus())
}
