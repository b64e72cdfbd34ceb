package localgce

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bootTimeout is far above the tens of milliseconds that a boot takes: machines under test are busy.
const bootTimeout = 60 * time.Second

// machine is the running half of a VM: all of it is gone when it is powered off.
type machine struct {
	cmd      *exec.Cmd
	lifeline *os.File      // init's standard input: closed when the project's process dies
	booted   chan error    // one value: the boot's outcome
	done     chan struct{} // closed when init, and so every process of the VM, is dead
	disk     *loop
	metadata *MetadataServer
	server   *http.Server
}

// powerOn boots a VM. What it acquired is released again if it fails. v.ops is held.
func (p *Project) powerOn(ctx context.Context, v *vm) error {
	m := &machine{booted: make(chan error, 1), done: make(chan struct{})}
	p.mu.Lock()
	v.machine, v.frozen, v.agent = m, false, AgentStatus{}
	v.boots++
	p.mu.Unlock()
	err := p.boot(ctx, v, m)
	if err == nil {
		p.setStatus(v, statusRunning)
		p.conf.Log.Info("vm started", "vm", v.Name, "instance", v.ID, "pid", m.cmd.Process.Pid)
		return nil
	}
	err = fmt.Errorf("start %s: %w", v.Name, err)
	return errors.Join(err, p.powerOff(context.WithoutCancel(ctx), v))
}

// boot acquires in order: disk, network, metadata server, processes.
func (p *Project) boot(ctx context.Context, v *vm, m *machine) error {
	image := p.names.disk(v.Name)
	if err := ensureDisk(ctx, image, v.Disk.Bytes); err != nil {
		return err
	}
	var err error
	if m.disk, err = attach(image); err != nil {
		return err
	}
	if err := p.fabric.plug(ctx, v.record); err != nil {
		return err
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
		return fmt.Errorf("init did not report within %s; see %s", bootTimeout, p.names.vmLog(v.Name))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serveMetadata opens the VM's 169.254.169.254.
func (p *Project) serveMetadata(v *vm, m *machine) error {
	var listener net.Listener
	err := inNamespace(p.names.vm(v.Name), func() (err error) {
		listener, err = net.Listen("tcp4", metadataAddress+":80")
		return err
	})
	if err != nil {
		return fmt.Errorf("open the metadata server: %w", err)
	}
	p.mu.Lock()
	m.metadata = NewMetadataServer(p.instance(v))
	p.mu.Unlock()
	m.server = &http.Server{Handler: m.metadata, ReadHeaderTimeout: 10 * time.Second}
	p.tasks.Go(func() { _ = m.server.Serve(listener) }) // ends with Close
	return nil
}

// spawn starts the VM's pid 1 in its network namespace and cgroup, with the other namespaces new.
func (p *Project) spawn(v *vm, m *machine) error {
	if err := errors.Join(makeCgroup(p.vmCgroup(v.Name)), os.MkdirAll(p.names.scratch(v.Name), 0o755), os.MkdirAll(p.names.vmLogFolder(v.Name), 0o755)); err != nil {
		return err
	}
	cgroup, err := os.Open(p.vmCgroup(v.Name))
	if err != nil {
		return err
	}
	defer cgroup.Close()
	log, err := os.OpenFile(p.names.vmLog(v.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer log.Close()
	spec, err := p.specFile(v, m)
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
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{bootStage}, Env: []string{"PATH=" + searchPath}, Dir: "/",
		Stdin: stdin, Stdout: log, Stderr: log, ExtraFiles: []*os.File{spec, reportEnd}, // specFD, reportFD
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
			Setsid:     true, UseCgroupFD: true, CgroupFD: int(cgroup.Fd()),
		},
	}
	if err := inNamespace(p.names.vm(v.Name), cmd.Start); err != nil {
		reports.Close()
		return fmt.Errorf("start init: %w", err)
	}
	p.mu.Lock()
	m.cmd = cmd
	p.mu.Unlock()
	p.tasks.Go(func() { p.listen(v, m, reports) })
	return nil
}

// specFile hands the boot's specification over in memory, so that there is no file to clean up.
func (p *Project) specFile(v *vm, m *machine) (*os.File, error) {
	spec := bootSpec{
		Name: v.Name, Zone: v.Zone, Project: p.conf.Project,
		BootID: randomUUID(), MachineID: strings.ReplaceAll(randomUUID(), "-", ""),
		Scratch: p.names.scratch(v.Name), Loop: m.disk.device, DeviceName: p.conf.DeviceName, MountPoint: p.conf.MountPoint,
		Logs: p.names.vmLogFolder(v.Name), Binds: p.conf.Binds, Agent: p.conf.Agent,
	}
	fd, err := unix.MemfdCreate("localgce-spec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("write boot specification: %w", err)
	}
	f := os.NewFile(uintptr(fd), "localgce-spec")
	if err := json.NewEncoder(f).Encode(spec); err != nil {
		f.Close()
		return nil, fmt.Errorf("write boot specification: %w", err)
	}
	return f, nil
}

func randomUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// listen takes in what a VM's init reports, until it is dead.
func (p *Project) listen(v *vm, m *machine, reports *os.File) {
	defer reports.Close()
	decoder := json.NewDecoder(reports)
	for {
		var s AgentStatus
		if err := decoder.Decode(&s); err != nil {
			break
		}
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
	}
	_ = m.cmd.Wait() // how init ends tells nothing
	close(m.done)
	select {
	case m.booted <- fmt.Errorf("init ended early; see %s", p.names.vmLog(v.Name)):
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
	p.conf.Log.Warn("vm ended by itself", "vm", v.Name)
	if err := p.release(context.Background(), v); err != nil {
		p.conf.Log.Error("release vm", "vm", v.Name, "error", err)
	}
}

// powerOff is the cut of the power. v.ops is held.
func (p *Project) powerOff(ctx context.Context, v *vm) error {
	m := v.machine
	if m.cmd != nil {
		if err := p.fabric.silence(ctx, v.record); err != nil {
			p.conf.Log.Warn("silence vm", "vm", v.Name, "error", err)
		}
		_ = m.cmd.Process.Kill() // its only error is that it is dead already
		<-m.done
	}
	return p.release(ctx, v)
}

// shutDown asks init to end in order and waits for it.
func (m *machine) shutDown(ctx context.Context) error {
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // its only error is that it is dead already
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release gives back what a dead VM held. v.ops is held.
func (p *Project) release(ctx context.Context, v *vm) error {
	m := v.machine
	var errs []error
	if m.server != nil {
		_ = m.server.Close()
	}
	if m.lifeline != nil {
		m.lifeline.Close()
	}
	errs = append(errs, removeCgroup(p.vmCgroup(v.Name)), p.fabric.unplug(ctx, v.record))
	if m.disk != nil {
		errs = append(errs, m.disk.detach(p.names.disk(v.Name)))
	}
	p.mu.Lock()
	v.machine, v.frozen, v.agent, v.status = nil, false, AgentStatus{}, statusTerminated
	p.mu.Unlock()
	p.conf.Log.Info("vm is off", "vm", v.Name)
	return errors.Join(errs...)
}

func (p *Project) setStatus(v *vm, status string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v.status = status
}

func (p *Project) vmCgroup(name string) string { return filepath.Join(p.cgroup, name) }
