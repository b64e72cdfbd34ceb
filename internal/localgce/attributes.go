package localgce

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"

	"github.com/quorate/quorate/internal/localgce/guest"
)

// SetAttribute sets an instance attribute of one VM, or with an empty name of all, and wakes who watches. A nil value
// removes it. VMs that are created later have what was set for all.
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
		if name != "" && v.key() != name {
			continue
		}
		v.Attributes = maps.Clone(v.Attributes)
		if v.Attributes == nil {
			v.Attributes = map[string]string{}
		}
		setOrDelete(v.Attributes, key, value)
		p.publish(v)
	}
	if name == "" {
		p.attributes = maps.Clone(p.attributes)
		setOrDelete(p.attributes, key, value)
	}
	p.mu.Unlock()
	return p.save()
}

func setOrDelete(m map[string]string, key string, value *string) {
	if value == nil {
		delete(m, key)
		return
	}
	m[key] = *value
}

var maintenanceEvents = []string{"NONE", "MIGRATE_ON_HOST_MAINTENANCE", "TERMINATE_ON_HOST_MAINTENANCE"}

// SetMaintenance sets a VM's maintenance-event, as GCE does a minute before it moves or ends a VM. Nothing else happens
// to the VM.
func (p *Project) SetMaintenance(name, event string) error {
	if !slices.Contains(maintenanceEvents, event) {
		return fmt.Errorf("maintenance event %q: %s are known", event, listed(maintenanceEvents))
	}
	return p.operate(name, "", func(v *vm) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		v.event = event
		p.publish(v)
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
	env := []string{"PATH=" + guest.SearchPath, "HOME=/root", "LANG=C.UTF-8"}
	if term, ok := os.LookupEnv("TERM"); ok {
		env = append(env, "TERM="+term)
	}
	return env
}
