package guest

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/cgroup"
)

const (
	// SearchPath is systemd's default for system units.
	SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// restartDelay is the unit's RestartSec.
	restartDelay = time.Second
	// abortTimeout is how long a hung agent may take to write its stacks after SIGABRT.
	abortTimeout = 10 * time.Second
	// unitCgroup is the agent's own cgroup in the VM, delegated to it.
	unitCgroup = "/sys/fs/cgroup/system.slice/quorate.service"
)

// Status is what a VM's pid 1 knows of its agent.
type Status struct {
	// State is starting, ready, stopping or restarting; of systemd VMs also inactive, where something that the agent
	// needs has failed, or a person has stopped it.
	State string `json:"state"`
	// PID is the agent's in the VM; 0 while there is none.
	PID int `json:"pid"`
	// Status is the agent's last STATUS= line.
	Status string `json:"status,omitempty"`
	// Restarts counts the agent's deaths since the boot; LastExit tells of the last one.
	Restarts int    `json:"restarts"`
	LastExit string `json:"lastExit,omitempty"`
	// Since is when State was entered.
	Since time.Time `json:"since"`
	// Error is why the VM could not boot.
	Error string `json:"error,omitempty"`
}

// unit is a VM's pid 1 at work: one agent, as systemd keeps a unit with Type=notify, Restart=always, KillMode=mixed.
// All of it runs in one goroutine.
//
//	starting --READY=1--> ready --exit, watchdog--> restarting --1 s--> starting
//	any --SIGTERM--> stopping --exit or deadline--> powered off
type unit struct {
	agent  Agent
	log    *log.Logger
	report *json.Encoder
	notify *notifySocket
	status Status

	restart  *time.Timer // runs while restarting
	watchdog *time.Timer // runs while ready, if the unit has a watchdog
	interval time.Duration
	deadline *time.Timer // runs after SIGTERM or SIGABRT: then SIGKILL
}

// runInit is stage two. When it returns, the kernel kills what is left of the VM.
func runInit(s Spec) error {
	unix.CloseOnExec(specFD)
	unix.CloseOnExec(reportFD)
	_ = os.WriteFile("/proc/1/comm", []byte(initStage), 0) // for ps; the kernel would show "exe"
	if err := enterInitScope(); err != nil {
		return err
	}
	notify, err := listenNotify()
	if err != nil {
		return err
	}
	u := &unit{
		agent: s.Agent, notify: notify, report: json.NewEncoder(os.NewFile(reportFD, "report")),
		log:     log.New(os.Stderr, initStage+": ", log.LstdFlags|log.LUTC|log.Lmsgprefix),
		restart: stopped(), watchdog: stopped(), deadline: stopped(),
	}
	u.loop(hostGone())
	return nil
}

// enterInitScope leaves the cgroup's root, which must hold no process where its children have controllers.
func enterInitScope() error {
	const scope = "/sys/fs/cgroup/init.scope"
	if err := os.MkdirAll(scope, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if err := os.WriteFile(scope+"/cgroup.procs", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("enter cgroup: %w", err)
	}
	cgroup.HandDown("/sys/fs/cgroup")
	slice := filepath.Dir(unitCgroup)
	if err := cgroup.Make(slice); err != nil {
		return err
	}
	cgroup.HandDown(slice)
	return nil
}

// hostGone is closed when the project's process has died: its end of standard input closes.
func hostGone() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(gone)
	}()
	return gone
}

func (u *unit) loop(gone <-chan struct{}) {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT)
	u.start()
	for {
		select {
		case <-gone:
			u.log.Print("the project's process is gone: power off")
			return
		case s := <-signals:
			if s != syscall.SIGCHLD {
				u.stop()
			} else if status, dead := u.reap(); dead {
				u.died(status)
			}
			if u.status.State == "stopping" && u.status.PID == 0 {
				u.log.Print("powered off")
				return
			}
		case n := <-u.notify.notices:
			u.notified(n)
		case <-u.watchdog.C:
			u.abort()
		case <-u.restart.C:
			u.start()
		case <-u.deadline.C:
			u.log.Print("the agent took too long to end: SIGKILL")
			_ = unix.Kill(u.status.PID, unix.SIGKILL)
		}
	}
}

func (u *unit) start() {
	if err := cgroup.Delegate(unitCgroup); err != nil {
		u.log.Print(err)
	}
	u.interval = u.agent.Watchdog
	u.enter("starting")
	pid, err := u.spawn()
	if err != nil {
		u.log.Printf("start the agent: %v", err)
		u.again("cannot start: " + err.Error())
		return
	}
	u.status.PID = pid
	u.notify.main.Store(int64(pid))
	u.log.Printf("started %s as pid %d", u.agent.Command[0], pid)
	u.tell()
}

// died does what KillMode=mixed and Restart=always do: the agent's death takes with it what is left in the unit's
// cgroup. Commands that people run in the VM are in none of its cgroups.
func (u *unit) died(status unix.WaitStatus) {
	u.status.PID = 0
	u.notify.main.Store(0)
	u.watchdog.Stop()
	u.deadline.Stop()
	how := describeExit(status)
	u.log.Printf("the agent has ended: %s", how)
	killCgroup()
	if err := cgroup.Remove(unitCgroup); err != nil {
		u.log.Print(err)
	}
	if u.status.State == "stopping" {
		u.status.LastExit = how
		u.tell()
		return
	}
	u.again(how)
}

// again arranges the agent's next start.
func (u *unit) again(why string) {
	u.status.Restarts++
	u.status.LastExit = why
	u.status.Status = ""
	u.enter("restarting")
	u.restart.Reset(restartDelay)
}

// stop is SIGTERM to init: an orderly power-off.
func (u *unit) stop() {
	if u.status.State == "stopping" {
		return
	}
	u.watchdog.Stop()
	u.restart.Stop()
	u.enter("stopping")
	if u.status.PID != 0 {
		_ = unix.Kill(u.status.PID, unix.SIGTERM)
		u.deadline.Reset(u.agent.StopTimeout)
	}
}

// abort is the watchdog's bite: SIGABRT makes a Go program write the stacks of all goroutines.
func (u *unit) abort() {
	u.log.Printf("no watchdog ping for %s: SIGABRT", u.interval)
	_ = unix.Kill(u.status.PID, unix.SIGABRT)
	u.deadline.Reset(abortTimeout)
}

func (u *unit) enter(state string) {
	u.status.State, u.status.Since = state, time.Now().UTC()
	u.tell()
}

// tell reports to the project. If nobody listens, standard input says so.
func (u *unit) tell() { _ = u.report.Encode(u.status) }

func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
