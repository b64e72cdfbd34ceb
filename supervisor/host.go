package supervisor

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// host launches the real processes of one name.
type host struct {
	cgroup string // parent; empty: process groups
	env    []string
	output *output
}

func (h *host) close() { h.output.close() }

func (h *host) dropped() int64 { return h.output.dropped.Load() }

// launch starts the program inside its group, with a pipe of ours as its output. It is *os.File on both sides, so that
// no goroutine of os/exec waits for the end of a pipe that a grandchild may hold open for ever.
func (h *host) launch(spec Spec) (running, error) {
	nice, err := niceness(0)
	if err != nil {
		return nil, err
	}
	g, err := h.group(spec.Name)
	if err != nil {
		return nil, err
	}
	notInForce := g.limit(spec.Limits, min(nice+spec.Nice, mostNice))
	if notInForce != "" {
		h.output.log.Warn("limits of a process are not in force", "process", spec.Name, "limits", notInForce)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		g.close()
		return nil, fmt.Errorf("open a pipe for its output: %w", err)
	}
	defer writer.Close()
	cmd := &exec.Cmd{
		Path:        spec.Path,
		Args:        append([]string{spec.Path}, spec.Args...),
		Env:         append(append([]string{}, h.env...), spec.Env...), // not nil: os/exec would take ours
		Dir:         "/",
		Stdout:      writer,
		Stderr:      writer,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if who := spec.RunAs; who != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: who.UID, Gid: who.GID} // and no further group
		cmd.SysProcAttr.AmbientCaps = who.Capabilities
	}
	g.join(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		reader.Close()
		g.close()
		return nil, err
	}
	g.joined(cmd.Process.Pid)
	if err := GiveWay(cmd.Process.Pid, spec.OOMScore, spec.Nice); err != nil {
		h.output.log.Warn("a process does not give way to the supervisor", "process", spec.Name, "error", err)
	}
	c := &child{
		cmd: cmd, group: g, notInForce: notInForce, name: spec.Name, log: h.output.log, reader: h.output.follow(reader),
		exitLeft: make(chan Exit, 1), exitGone: make(chan Exit, 1),
	}
	go c.wait() // ends when the process does, which only the kernel can delay; loop waits for what it sends
	return c, nil
}

func (h *host) group(name string) (group, error) {
	if h.cgroup == "" {
		return &processGroup{}, nil
	}
	return openCgroup(filepath.Join(h.cgroup, name))
}

// childEnv takes out of the environment what is meant for the supervisor alone.
func childEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "NOTIFY_SOCKET" || strings.HasPrefix(name, "WATCHDOG_") || strings.HasPrefix(name, "LISTEN_") ||
			slices.Contains(proxyVariables, strings.ToUpper(name))
	})
}

// proxyVariables lead requests to a proxy. etcd would speak to its peers through it, and the apiserver to kubelets.
var proxyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}

// child is one run of a program.
type child struct {
	cmd                *exec.Cmd
	group              group
	notInForce         string
	reader             *follower
	name               string
	log                *slog.Logger
	exitLeft, exitGone chan Exit // room for one each: wait never waits

	mu     sync.Mutex
	reaped bool // the number of the process may belong to a stranger
}

// leftNotice is how long what a process has started may outlive it, killed, before that is worth a state.
const leftNotice = 200 * time.Millisecond

// outputPatience is how long the end of the output is waited for once nothing lives. What is in the pipe is read at
// once; only a process that has left the group can hold the other end open.
const outputPatience = 100 * time.Millisecond

func (c *child) pid() int          { return c.cmd.Process.Pid }
func (c *child) unlimited() string { return c.notInForce }
func (c *child) left() <-chan Exit { return c.exitLeft }
func (c *child) gone() <-chan Exit { return c.exitGone }

// terminate sends SIGTERM to the process alone, as systemd's KillMode=mixed does, and SIGCONT, without which a stopped
// process would not see it.
func (c *child) terminate() error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := c.signal(func() error { return c.cmd.Process.Signal(signal) }); err != nil {
			return fmt.Errorf("send %s: %w", signal, err)
		}
	}
	return nil
}

func (c *child) kill() error { return c.signal(c.group.kill) }

// signal does it while the process has not been reaped, so that no stranger can have its number. Once it has been, wait
// has killed the group.
func (c *child) signal(do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return nil
	}
	return do()
}

// wait sees the run to its end: the process, what it started, its output.
func (c *child) wait() {
	awaitExit(c.pid())
	for said := false; ; time.Sleep(killRetry) {
		err := c.reap()
		if err == nil {
			break
		}
		if !said {
			c.log.Warn("what a process has started cannot be killed", "process", c.name, "error", err)
		}
		said = true
	}
	exit := exitOf(c.cmd.ProcessState.Sys().(syscall.WaitStatus))
	c.awaitGroup(exit)
	exit.OutOfMemory = c.group.close()
	exit.Tail = c.reader.finish(outputPatience)
	c.exitGone <- exit
}

// reap kills what the process has left behind and reaps it then: until that its number names the group. An error, for
// want of a file or of memory, means that nothing has changed.
func (c *child) reap() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.group.kill(); err != nil && c.group.alive() {
		return err
	}
	_ = c.cmd.Wait() // a bad exit is no error here; ProcessState has it
	c.reaped = true
	return nil
}

// awaitGroup returns when nothing of the group lives.
func (c *child) awaitGroup(exit Exit) {
	begin, noticed := time.Now(), false
	for pause := time.Millisecond; c.group.alive(); pause = min(2*pause, 50*time.Millisecond) {
		if !noticed && time.Since(begin) > leftNotice {
			noticed = true
			c.exitLeft <- exit
		}
		time.Sleep(pause)
	}
}
