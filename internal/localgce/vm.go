package localgce

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/localgce/guest"
	"github.com/quorate/quorate/internal/localgce/network"
)

// The states of a VM, in the Compute API's words.
const (
	statusRunning    = "RUNNING"
	statusStopping   = "STOPPING"
	statusTerminated = "TERMINATED"
	statusDeleted    = "deleted" // nobody hears of it but who waited to operate on it
)

// vm is one VM. Its record and flags are guarded by Project.mu; ops lets one operation at a time have it.
type vm struct {
	ops sync.Mutex
	record
	status   string
	frozen   bool
	link     network.Link
	cut      bool
	promised netip.Addr // its next address, while it is recreated
	event    string     // maintenance-event; NONE where empty
	nameless bool       // its name server is silent
	boots    int
	agent    guest.Status
	machine  *machine // nil while powered off
}

// vm finds a VM by name.
func (p *Project) vm(name string) (*vm, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var known []string
	for _, v := range p.vms {
		if v.key() == name {
			return v, nil
		}
		known = append(known, v.key())
	}
	return nil, &NotFoundError{Name: name, Known: known}
}

// NotFoundError says that the project has no VM of that name.
type NotFoundError struct {
	Name  string
	Known []string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no vm is named %q; there are %s", e.Name, listed(e.Known))
}

// listed names what there is, for an error.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// StateError says that a VM is in a state in which what was asked makes no sense.
type StateError struct{ Name, Is, Wanted string }

// Error implements error.
func (e *StateError) Error() string {
	return fmt.Sprintf("vm %s is %s; this needs it to be %s", e.Name, e.Is, e.Wanted)
}

// operate runs f with the VM to itself, if it is in the wanted state ("" is any).
func (p *Project) operate(name, wanted string, f func(*vm) error) error {
	v, err := p.vm(name)
	if err != nil {
		return err
	}
	v.ops.Lock()
	defer v.ops.Unlock()
	p.mu.Lock()
	is := v.status
	p.mu.Unlock()
	if is == statusDeleted || wanted != "" && is != wanted {
		return &StateError{Name: name, Is: is, Wanted: wanted}
	}
	return f(v)
}

// eachOf is operate for one VM, or with an empty name for each in turn, in any state.
func (p *Project) eachOf(name string, f func(*vm) error) error {
	names := []string{name}
	if name == "" {
		names = nil
		p.mu.Lock()
		for _, v := range p.vms {
			names = append(names, v.key())
		}
		p.mu.Unlock()
	}
	var errs []error
	for _, n := range names {
		errs = append(errs, p.operate(n, "", f))
	}
	return errors.Join(errs...)
}

// StartVM powers a VM on: the same instance id and data disk, a fresh boot disk, a new boot id. It returns when the
// agent is started.
func (p *Project) StartVM(ctx context.Context, name string) error {
	return p.operate(name, statusTerminated, func(v *vm) error {
		if v.Lost {
			return fmt.Errorf("start %s: its instance runs on another host, as %s; it can be deleted", name, v.Name)
		}
		return p.powerOn(ctx, v)
	})
}

// KillVM cuts a VM's power. First the network link goes, so that nobody hears it die.
func (p *Project) KillVM(ctx context.Context, name string) error {
	return p.operate(name, statusRunning, func(v *vm) error { return p.powerOff(ctx, v) })
}

// StopVM ends a VM in order: pid 1 stops the agent, and what has not ended after Agent.StopTimeout is killed.
func (p *Project) StopVM(ctx context.Context, name string) error {
	return p.operate(name, statusRunning, func(v *vm) error {
		if v.frozen {
			return &StateError{Name: name, Is: "frozen", Wanted: "thawed"}
		}
		if v.machine.stall != nil {
			return &StateError{Name: name, Is: "without a disk that takes writes", Wanted: "whole"}
		}
		return p.stopInOrder(ctx, v)
	})
}

// stopInOrder ends a VM that is well. v.ops is held.
func (p *Project) stopInOrder(ctx context.Context, v *vm) error {
	p.setStatus(v, statusStopping)
	// Our own init kills the agent at that time, and ends.
	const grace = 5 * time.Second
	ended, err := v.machine.shutDown(ctx, p.stopTimeout(v)+grace)
	if err != nil {
		p.setStatus(v, statusRunning)
		return fmt.Errorf("stop %s: %w", v.key(), err)
	}
	if !ended {
		return p.powerOff(ctx, v)
	}
	return p.release(ctx, v)
}

// stopTimeout is how long a VM has to stop until its power is cut.
func (p *Project) stopTimeout(v *vm) time.Duration {
	if v.Spot {
		return min(p.conf.Agent.StopTimeout, spotStopTimeout)
	}
	return p.conf.Agent.StopTimeout
}

// FreezeVM stops a VM's processes and silences its network, as when its host hangs. ThawVM lets it go on.
func (p *Project) FreezeVM(ctx context.Context, name string) error {
	return p.operate(name, statusRunning, func(v *vm) error {
		if err := v.machine.init.freezing(v.machine); err != nil {
			p.conf.Log.Warn("freeze vm", "vm", v.key(), "error", err)
		}
		return p.setFrozen(ctx, v, true)
	})
}

// ThawVM ends FreezeVM.
func (p *Project) ThawVM(ctx context.Context, name string) error {
	return p.operate(name, statusRunning, func(v *vm) error {
		err := p.setFrozen(ctx, v, false)
		v.machine.init.thawed(v.machine)
		return err
	})
}

func (p *Project) setFrozen(ctx context.Context, v *vm, frozen bool) error {
	value := map[bool]string{true: "1", false: "0"}[frozen]
	if err := p.changeCuts(ctx, func() { v.frozen = frozen }); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.vmCgroup(v.Slot), "cgroup.freeze"), []byte(value), 0o644); err != nil {
		return fmt.Errorf("freeze or thaw %s: %w", v.key(), err)
	}
	return nil
}
