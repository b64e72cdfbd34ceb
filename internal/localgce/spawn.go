package localgce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/quorate/quorate/internal/localgce/cgroup"
	"github.com/quorate/quorate/internal/localgce/guest"
	"github.com/quorate/quorate/internal/localgce/network"
)

// spawn starts the VM's pid 1 in its network namespace and cgroup, with the other namespaces new.
func (p *Project) spawn(v *vm, m *machine) error {
	if err := errors.Join(cgroup.Make(p.vmCgroup(v.Slot)), os.MkdirAll(p.names.Scratch(v.Slot), 0o755),
		os.MkdirAll(p.names.VMLogFolder(v.key()), 0o755)); err != nil {
		return err
	}
	cgroup, err := os.Open(p.vmCgroup(v.Slot))
	if err != nil {
		return err
	}
	defer cgroup.Close()
	log, err := os.OpenFile(p.names.VMLog(v.key()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer log.Close()
	boot := p.bootSpec(v, m)
	if err := m.init.prepare(&boot); err != nil {
		return err
	}
	spec, err := boot.File()
	if err != nil {
		return err
	}
	defer spec.Close()
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	m.lifeline = lifeline
	reports, reportEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reportEnd.Close()
	cmd := guest.Command(cgroup, log)
	cmd.Stdin, cmd.ExtraFiles = stdin, []*os.File{spec, reportEnd} // specFD, reportFD
	if err := network.In(p.names.VM(v.Slot), cmd.Start); err != nil {
		reports.Close()
		return fmt.Errorf("start init: %w", err)
	}
	p.mu.Lock()
	m.cmd = cmd
	p.mu.Unlock()
	p.tasks.Go(func() { _ = cmd.Wait(); close(m.done) }) // how pid 1 ends tells nothing
	p.tasks.Go(func() { p.listen(v, m, reports) })
	return nil
}

// guest.Spec is what a boot of a VM needs to know, of either kind.
func (p *Project) bootSpec(v *vm, m *machine) guest.Spec {
	agent := p.conf.Agent
	agent.StopTimeout = p.stopTimeout(v)
	return guest.Spec{
		Name: v.Name, Zone: v.Zone, Slot: v.Slot,
		BootID: uuid.NewString(), MachineID: strings.ReplaceAll(uuid.NewString(), "-", ""),
		Scratch: p.names.Scratch(v.Slot), Loop: m.disk.Device,
		Log: p.names.VMLog(v.key()), Logs: p.names.VMLogFolder(v.key()), Binds: p.conf.Binds, Agent: agent,
	}
}

// listen takes in what is said of a VM's agent, until the VM is dead.
func (p *Project) listen(v *vm, m *machine, reports *os.File) {
	defer reports.Close()
	m.init.follow(m, reports, func(s guest.Status) {
		outcome := error(nil)
		if s.Error != "" {
			outcome = errors.New(s.Error)
		}
		select {
		case m.booted <- outcome:
		default: // it has booted before
		}
		p.mu.Lock()
		if v.machine == m {
			v.agent = s
		}
		p.mu.Unlock()
	})
	<-m.done
	select {
	case m.booted <- fmt.Errorf("init ended early; see %s", p.names.VMLog(v.key())):
	default:
	}
	p.endedAlone(v, m)
}

// endedAlone cleans up after a VM that ended without being asked to.
func (p *Project) endedAlone(v *vm, m *machine) {
	v.ops.Lock()
	defer v.ops.Unlock()
	if v.machine != m {
		return
	}
	p.conf.Log.Warn("vm ended by itself", "vm", v.key())
	if err := p.release(context.Background(), v); err != nil {
		p.conf.Log.Error("release vm", "vm", v.key(), "error", err)
	}
}
