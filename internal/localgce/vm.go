package localgce

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// The states of a VM, in the Compute API's words.
const (
	statusRunning    = "RUNNING"
	statusStopping   = "STOPPING"
	statusTerminated = "TERMINATED"
)

// vm is one VM. Its record and flags are guarded by Project.mu; ops lets one operation at a time have it.
type vm struct {
	ops sync.Mutex
	record
	status  string
	frozen  bool
	cut     bool
	boots   int
	agent   AgentStatus
	machine *machine // nil while powered off
}

// vm finds a VM by name.
func (p *Project) vm(name string) (*vm, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var known []string
	for _, v := range p.vms {
		if v.Name == name {
			return v, nil
		}
		known = append(known, v.Name)
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
	return fmt.Sprintf("no vm is named %q; there are %q", e.Name, e.Known)
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
	if wanted != "" && is != wanted {
		return &StateError{Name: name, Is: is, Wanted: wanted}
	}
	return f(v)
}

// StartVM powers a VM on: the same instance id and data disk, a fresh boot disk, a new boot id. It returns when the agent is started.
func (p *Project) StartVM(ctx context.Context, name string) error {
	return p.operate(name, statusTerminated, func(v *vm) error { return p.powerOn(ctx, v) })
}

// KillVM cuts a VM's power. First the network link goes, so that nobody hears it die.
func (p *Project) KillVM(ctx context.Context, name string) error {
	return p.operate(name, statusRunning, func(v *vm) error { return p.powerOff(ctx, v) })
}

// StopVM ends a VM in order: SIGTERM to the agent, and after Agent.StopTimeout SIGKILL.
func (p *Project) StopVM(ctx context.Context, name string) error {
	return p.operate(name, statusRunning, func(v *vm) error {
		if v.frozen {
			return &StateError{Name: name, Is: "frozen", Wanted: "thawed"}
		}
		p.setStatus(v, statusStopping)
		if err := v.machine.shutDown(ctx); err != nil {
			p.setStatus(v, statusRunning)
			return fmt.Errorf("stop %s: %w", name, err)
		}
		return p.release(ctx, v)
	})
}

// FreezeVM stops a VM's processes and silences its network, as when its host hangs. ThawVM lets it go on.
func (p *Project) FreezeVM(ctx context.Context, name string) error {
	return p.operate(name, statusRunning, func(v *vm) error { return p.setFrozen(ctx, v, true) })
}

// ThawVM ends FreezeVM.
func (p *Project) ThawVM(ctx context.Context, name string) error {
	return p.operate(name, statusRunning, func(v *vm) error { return p.setFrozen(ctx, v, false) })
}

func (p *Project) setFrozen(ctx context.Context, v *vm, frozen bool) error {
	value := map[bool]string{true: "1", false: "0"}[frozen]
	if err := p.changeCuts(ctx, func() { v.frozen = frozen }); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.vmCgroup(v.Name), "cgroup.freeze"), []byte(value), 0o644); err != nil {
		return fmt.Errorf("freeze or thaw %s: %w", v.Name, err)
	}
	return nil
}

// Recreation says what a recreated VM keeps.
type Recreation struct {
	// Wipe replaces the data disk by a new empty one.
	Wipe bool `json:"wipe,omitempty"`
	// Address, if valid, is the VM's new address.
	Address netip.Addr `json:"address,omitzero"`
}

// RecreateVM deletes a VM and creates one of the same name in the same zone: a new instance id, a fresh boot disk. It is started.
func (p *Project) RecreateVM(ctx context.Context, name string, r Recreation) error {
	return p.operate(name, "", func(v *vm) error {
		if r.Address.IsValid() {
			if err := p.checkFree(name, r.Address); err != nil {
				return err
			}
		}
		if v.machine != nil {
			if err := p.powerOff(ctx, v); err != nil {
				return err
			}
		}
		if r.Wipe {
			if err := os.Remove(p.names.disk(name)); err != nil {
				return fmt.Errorf("remove the data disk of %s: %w", name, err)
			}
		}
		p.mu.Lock()
		v.ID, v.Created, v.boots = newID(), time.Now().UTC(), 0
		if r.Wipe {
			v.Disk = p.newDisk(name)
		}
		if r.Address.IsValid() {
			v.Address = r.Address
		}
		p.mu.Unlock()
		if err := p.save(); err != nil {
			return err
		}
		return p.powerOn(ctx, v)
	})
}

func (p *Project) checkFree(name string, a netip.Addr) error {
	if err := p.conf.checkAddress(a); err != nil {
		return fmt.Errorf("recreate %s: %w", name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.vms {
		if v.Address == a && v.Name != name {
			return fmt.Errorf("recreate %s: address %s belongs to %s", name, a, v.Name)
		}
	}
	return nil
}

// SetAttribute sets an instance attribute of one VM, or with an empty name of all, and wakes who watches. A nil value
// removes it.
func (p *Project) SetAttribute(name, key string, value *string) error {
	if key == "" {
		return fmt.Errorf("set attribute: the key is empty")
	}
	if name != "" {
		if _, err := p.vm(name); err != nil {
			return err
		}
	}
	p.mu.Lock()
	for _, v := range p.vms {
		if name != "" && v.Name != name {
			continue
		}
		v.Attributes = maps.Clone(v.Attributes)
		if v.Attributes == nil {
			v.Attributes = map[string]string{}
		}
		if value == nil {
			delete(v.Attributes, key)
		} else {
			v.Attributes[key] = *value
		}
		p.publish(v)
	}
	p.mu.Unlock()
	return p.save()
}

// SetMetadataFault makes the metadata server of a running VM fail, or be well with the zero value.
func (p *Project) SetMetadataFault(name string, f MetadataFault) error {
	switch f.Kind {
	case "", "slow", "away", "html":
	default:
		return fmt.Errorf("metadata fault %q: slow, away, html or none are known", f.Kind)
	}
	return p.operate(name, statusRunning, func(v *vm) error {
		v.machine.metadata.SetFault(f)
		return nil
	})
}

// Command prepares a program to be run inside a running VM, as root, in all its namespaces. The caller runs it.
func (p *Project) Command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	v, err := p.vm(name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.machine == nil {
		return nil, &StateError{Name: name, Is: v.status, Wanted: statusRunning}
	}
	enter := EnterArgs(v.machine.cmd.Process.Pid, args...)
	cmd := exec.CommandContext(ctx, enter[0], enter[1:]...)
	cmd.Env = EnterEnv()
	return cmd, nil
}

// EnterArgs is the command line that runs args in the VM whose init is pid.
func EnterArgs(pid int, args ...string) []string {
	return append([]string{"nsenter", "-t", fmt.Sprint(pid), "-m", "-p", "-u", "-i", "-n", "-C", "--"}, args...)
}

// EnterEnv is the environment of commands that are run in a VM.
func EnterEnv() []string {
	env := []string{"PATH=" + searchPath, "HOME=/root", "LANG=C.UTF-8"}
	if term, ok := os.LookupEnv("TERM"); ok {
		env = append(env, "TERM="+term)
	}
	return env
}
