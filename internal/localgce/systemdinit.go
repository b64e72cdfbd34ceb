package localgce

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/cgroup"
	"github.com/quorate/quorate/internal/localgce/disk"
	"github.com/quorate/quorate/internal/localgce/guest"
	"github.com/quorate/quorate/internal/localgce/host"
	"github.com/quorate/quorate/internal/localgce/unitbus"
)

const (
	// agentUnit is the path of quorate.service on D-Bus.
	agentUnit = "/org/freedesktop/systemd1/unit/quorate_2eservice"
	// poweroff is SIGRTMIN+4, with which systemd starts poweroff.target. SIGTERM would only make it execute itself
	// anew.
	poweroff = syscall.Signal(34 + 4)
	// busPause is how long a try to reach the VM's bus is waited for to be repeated: it comes up half a second after
	// systemd.
	busPause = 20 * time.Millisecond
	// busPatience is for a call of a VM that may be hung, or not have booted.
	busPatience = 2 * time.Second
	// pingInterval is the longest that a unit of the image takes between two watchdog pings: half of 30 s.
	pingInterval = 15 * time.Second
)

// systemdInit is the pid 1 of a VM that boots an image's tree.
type systemdInit struct {
	project  *Project
	console  *console
	cgroups  []string
	rearming rearming
}

// ensureDisk makes a blank disk, as Google does: the image has a unit that makes a file system on it.
func (*systemdInit) ensureDisk(_ context.Context, image string, size int64) error {
	return disk.EnsureImage(image, size)
}

// prepare makes the VM's cgroups of version 1 and its console.
func (i *systemdInit) prepare(s *guest.Spec) error {
	if missing := missingInotify(1); len(missing) > 0 {
		return &host.PreflightError{Missing: missing}
	}
	list, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	for _, h := range list {
		path := filepath.Join(h.Root, i.project.names.Fabric(), s.Slot)
		i.cgroups = append(i.cgroups, path)
		if err := cgroup.MakeV1(path); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(s.Log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if i.console, err = openConsole(log); err != nil {
		return err
	}
	s.Systemd = &guest.SystemdSpec{
		Tree: i.project.tree.Path, Console: i.console.device, Hierarchies: list, Cgroups: i.cgroups,
		Masked: i.project.conf.Masked,
	}
	return nil
}

func (i *systemdInit) release() {
	i.rearming.stop()
	if i.console != nil {
		i.console.close()
	}
}

func (*systemdInit) stopSignal() syscall.Signal { return poweroff }

// follow first reads what the boot's stage reports, which is nothing if it ends in executing systemd, and then listens
// on the VM's bus. The bus may go and come, as when a person starts it anew.
func (*systemdInit) follow(m *machine, reports io.Reader, tell func(guest.Status)) {
	var s guest.Status
	if json.NewDecoder(reports).Decode(&s) == nil {
		tell(s)
		<-m.done
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-m.done; cancel() }()
	last := unitbus.State{}
	for ctx.Err() == nil {
		// its only error is that there is no bus, now or any more
		_ = unitbus.Watch(ctx, m.bus(), agentUnit, func(now unitbus.State) {
			if now.ActiveState == "inactive" && now.Job && last.ActiveState == "" {
				return // it waits for the data disk: the VM has not booted yet
			}
			if now.ExecMainCode == 0 { // a new run: what is known of the last one is of interest
				now.ExecMainCode, now.ExecMainStatus, now.Result = last.ExecMainCode, last.ExecMainStatus, last.Result
			}
			last = now
			tell(agentStatus(now))
		})
		select {
		case <-ctx.Done():
		case <-time.After(busPause):
		}
	}
}

// bus is the VM's system bus as the project reaches it.
func (m *machine) bus() string {
	return fmt.Sprintf("/proc/%d/root/run/dbus/system_bus_socket", m.cmd.Process.Pid)
}

// agentStatus says in the words of our own init what systemd says of the unit.
func agentStatus(u unitbus.State) guest.Status {
	s := guest.Status{PID: u.MainPID, Status: u.StatusText, Restarts: u.NRestarts, LastExit: lastExit(u),
		Since: u.StateChange}
	switch {
	case u.ActiveState == "active":
		s.State = "ready"
	case u.ActiveState == "activating" && u.SubState == "auto-restart":
		s.State = "restarting"
	case u.ActiveState == "activating":
		s.State = "starting"
	case u.ActiveState == "deactivating":
		s.State = "stopping"
	default:
		s.State = u.ActiveState
	}
	return s
}

// lastExit tells how the unit's main process has ended last, and what systemd thinks of it where that says more.
func lastExit(u unitbus.State) (text string) {
	const exited = 1 // waitid's CLD_EXITED; what else there is are signals
	switch u.ExecMainCode {
	case 0:
		return ""
	case exited:
		text = "exit status " + strconv.Itoa(u.ExecMainStatus)
	default:
		text = "signal " + unix.SignalName(syscall.Signal(u.ExecMainStatus))
	}
	switch u.Result {
	case "watchdog", "timeout", "protocol", "resources", "oom-kill":
		text += " (" + u.Result + ")"
	}
	return text
}

// freezing switches the watchdogs of services off: the clock goes on while the VM stands, as it does not while Google
// moves one, so at the thaw systemd would take every service for hung.
func (i *systemdInit) freezing(m *machine) error {
	i.rearming.stop()
	return i.switchWatchdogs(m, false)
}

// thawed switches them on again when each service has had the time for a ping.
func (i *systemdInit) thawed(m *machine) {
	i.rearming.start(m.done, pingInterval, func() {
		if err := i.switchWatchdogs(m, true); err != nil {
			i.project.conf.Log.Warn("the watchdogs of services stay off", "error", err)
		}
	})
}

func (*systemdInit) switchWatchdogs(m *machine, on bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), busPatience)
	defer cancel()
	return unitbus.SetServiceWatchdogs(ctx, m.bus(), on)
}

// rearming is what is done some time after a thaw, unless the VM is frozen again or ends before. One goroutine at a
// time uses it: the VM's operations exclude each other. The zero value waits for nothing.
type rearming struct {
	cancel chan struct{}
	ended  chan struct{}
}

// start has do called after a while, once, unless stop is called or the VM is done before.
func (r *rearming) start(done <-chan struct{}, after time.Duration, do func()) {
	r.stop()
	cancel, ended := make(chan struct{}), make(chan struct{})
	r.cancel, r.ended = cancel, ended
	go func() {
		defer close(ended)
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			do()
		case <-cancel:
		case <-done:
		}
	}()
}

// stop returns when nothing is waited for any more, and a do that had begun has ended: one that came after a freeze
// would switch the watchdogs on while the VM stands.
func (r *rearming) stop() {
	if r.cancel == nil {
		return
	}
	close(r.cancel)
	<-r.ended
	r.cancel, r.ended = nil, nil
}
