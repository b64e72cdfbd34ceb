package localgce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/localgce/cgroup"
	"github.com/quorate/quorate/internal/localgce/disk"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/guest"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/metadata"
	"github.com/quorate/quorate/internal/localgce/network"
)

// bootTimeout is far above the tens of milliseconds that a boot takes: machines under test are busy.
const bootTimeout = 60 * time.Second

// machine is the running half of a VM: all of it is gone when it is powered off.
type machine struct {
	init     initSystem
	cmd      *exec.Cmd
	lifeline *os.File      // init's standard input: closed when the project's process dies
	booted   chan error    // one value: the boot's outcome
	done     chan struct{} // closed when init, and so every process of the VM, is dead
	disk     *disk.Loop
	stall    *disk.Stall // nil but while the data disk takes no writes
	metadata *metadata.Server
	closers  []io.Closer // of what it alone is served
}

// powerOn boots a VM. What it acquired is released again if it fails. v.ops is held.
func (p *Project) powerOn(ctx context.Context, v *vm) error {
	m := &machine{init: p.newInit(), booted: make(chan error, 1), done: make(chan struct{})}
	p.mu.Lock()
	v.machine, v.frozen, v.agent = m, false, guest.Status{}
	v.boots++
	p.mu.Unlock()
	err := p.boot(ctx, v, m)
	if err == nil {
		p.setStatus(v, statusRunning)
		p.conf.Log.Info("vm started", "vm", v.key(), "instance", v.ID, "pid", m.cmd.Process.Pid)
		return nil
	}
	err = fmt.Errorf("start %s: %w", v.key(), err)
	return errors.Join(err, p.powerOff(context.WithoutCancel(ctx), v))
}

// boot acquires in order: disk, network, metadata server, processes.
func (p *Project) boot(ctx context.Context, v *vm, m *machine) error {
	image := p.image(v.Disk.Image)
	err := m.init.ensureDisk(ctx, image, v.Disk.Bytes)
	if err != nil {
		return err
	}
	if err := disk.GrowFileSystem(ctx, image); err != nil {
		return err
	}
	if m.disk, err = disk.Attach(image); err != nil {
		return err
	}
	if err := p.fabric.Plug(ctx, p.port(v)); err != nil {
		return err
	}
	if err := p.fabric.Shape(ctx, p.port(v), v.link, network.Link{}); err != nil {
		return err
	}
	if v.nameless {
		if err := p.fabric.SilenceNames(ctx, p.port(v), true); err != nil {
			return err
		}
	}
	if err := p.changeCuts(ctx, func() {}); err != nil { // a recreated VM may have another address
		return err
	}
	if err := p.serveMetadata(v, m); err != nil {
		return err
	}
	if err := p.spawn(v, m); err != nil {
		return err
	}
	select {
	case err := <-m.booted:
		return err
	case <-time.After(bootTimeout):
		return fmt.Errorf("init did not report within %s; see %s", bootTimeout, p.names.VMLog(v.key()))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serveMetadata opens the VM's 169.254.169.254.
func (p *Project) serveMetadata(v *vm, m *machine) error {
	p.mu.Lock()
	m.metadata = metadata.New(p.instance(v))
	p.mu.Unlock()
	if p.conf.NamesAndTime {
		if err := p.serveNamesAndTime(v, m); err != nil {
			return err
		}
	}
	return p.serveIn(v, m, instance.MetadataAddress+":80", fault.Metadata, m.metadata)
}

// serveIn serves one of Google's services inside a VM's network namespace, to that VM alone.
func (p *Project) serveIn(v *vm, m *machine, address string, s fault.Service, h http.Handler) error {
	var listener net.Listener
	err := network.In(p.names.VM(v.Slot), func() (err error) {
		listener, err = net.Listen("tcp4", address)
		return err
	})
	if err != nil {
		return fmt.Errorf("open the %s server: %w", s, err)
	}
	who := func(*http.Request) string {
		p.mu.Lock()
		defer p.mu.Unlock()
		return v.key()
	}
	server := &http.Server{Handler: p.faults.Before(s, who, h), ReadHeaderTimeout: 10 * time.Second}
	m.closers = append(m.closers, server)
	p.tasks.Go(func() { _ = server.Serve(listener) }) // ends with Close
	return nil
}

// powerOff is the cut of the power. v.ops is held.
func (p *Project) powerOff(ctx context.Context, v *vm) error {
	m := v.machine
	if m.stall != nil {
		m.stall.CutPower()
	}
	if m.cmd != nil {
		if err := p.fabric.Silence(ctx, p.port(v)); err != nil {
			p.conf.Log.Warn("silence vm", "vm", v.key(), "error", err)
		}
		cgroup.ThawV1(cgroup.V1(p.names.Fabric(), v.Slot))
		_ = m.cmd.Process.Kill() // its only error is that it is dead already
		<-m.done
	}
	return p.release(ctx, v)
}

// shutDown asks pid 1 to end in order and waits for it, at most so long; it says whether it has ended.
func (m *machine) shutDown(ctx context.Context, limit time.Duration) (ended bool, err error) {
	_ = m.cmd.Process.Signal(m.init.stopSignal()) // its only error is that it is dead already
	select {
	case <-m.done:
		return true, nil
	case <-time.After(limit):
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// release gives back what a dead VM held. v.ops is held.
func (p *Project) release(ctx context.Context, v *vm) error {
	m := v.machine
	var errs []error
	if m.stall != nil {
		errs = append(errs, m.stall.End())
	}
	for _, c := range m.closers {
		_ = c.Close()
	}
	if m.lifeline != nil {
		m.lifeline.Close()
	}
	m.init.release()
	errs = append(errs, cgroup.Remove(p.vmCgroup(v.Slot)), cgroup.RemoveV1(cgroup.V1(p.names.Fabric(), v.Slot)),
		p.fabric.Unplug(ctx, p.port(v)))
	if m.disk != nil {
		errs = append(errs, m.disk.Detach())
	}
	p.mu.Lock()
	v.machine, v.frozen, v.agent, v.status = nil, false, guest.Status{}, statusTerminated
	v.LastStop = time.Now().UTC()
	p.mu.Unlock()
	p.conf.Log.Info("vm is off", "vm", v.key())
	return errors.Join(errs...)
}

func (p *Project) setStatus(v *vm, status string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v.status = status
}

func (p *Project) vmCgroup(slot string) string { return filepath.Join(p.cgroup, slot) }
