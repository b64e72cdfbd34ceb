package guest

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
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
	env := append([]string{"PATH=" + SearchPath, "LANG=C.UTF-8", "NOTIFY_SOCKET=" + notifyPath}, u.agent.Env...)
	if u.interval > 0 {
		// WATCHDOG_PID is left out: it cannot be known before the fork, and without it the main process is meant.
		env = append(env, "WATCHDOG_USEC="+strconv.FormatInt(u.interval.Microseconds(), 10))
	}
	// What is started inherits the slack of the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := setTimerSlack(u.agent.TimerSlack); err != nil {
		return 0, err
	}
	defer func() { _ = setTimerSlack(0) }() // what worked a moment ago
	return syscall.ForkExec(u.agent.Command[0], u.agent.Command, &syscall.ProcAttr{
		Dir: "/", Env: env, Files: []uintptr{null.Fd(), 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(cgroup.Fd())},
	})
}

// setTimerSlack sets that of the calling thread; 0: the kernel's own.
func setTimerSlack(d time.Duration) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d.Nanoseconds()), 0, 0, 0); err != nil {
		return fmt.Errorf("set the timer slack to %s: %w", d, err)
	}
	return nil
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

// killCgroup kills what the agent left in the unit's cgroup and returns when nothing of it lives, however long that
// takes: a process that waits for a frozen disk dies with the thaw, and before that the agent must not start anew.
func killCgroup() {
	for populated(unitCgroup) {
		_ = os.WriteFile(unitCgroup+"/cgroup.kill", []byte("1"), 0o644)
		time.Sleep(2 * time.Millisecond)
	}
}

// populated says whether a cgroup, or one below it, has a process that lives.
func populated(cgroup string) bool {
	events, err := os.ReadFile(cgroup + "/cgroup.events")
	return err == nil && strings.Contains(string(events), "populated 1")
}

func describeExit(s unix.WaitStatus) string {
	if s.Signaled() {
		return "signal " + unix.SignalName(s.Signal())
	}
	return "exit status " + strconv.Itoa(s.ExitStatus())
}
