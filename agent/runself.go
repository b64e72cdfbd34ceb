package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"syscall"

	"github.com/quorate/quorate/supervisor"
)

// stderrTail is how much is kept of what a run complains of. A crash with its stack is within it.
const stderrTail = 64 << 10

// SelfRun is one run of this program as a child of the agent: work that ends by itself, in a process of its own because
// of the memory that it takes, or because it may crash. The supervisor has the children that stay.
type SelfRun struct {
	// Self is the program; Env is all of its environment.
	Self      string
	Args, Env []string
	// OOMScore and Nice put it behind the agent (supervisor.GiveWay).
	OOMScore, Nice int
	Log            *slog.Logger
}

// Run returns what the process has printed; the error says what it complained of. One rule holds for how it ends with
// the agent: it gets SIGTERM once ctx is done, SIGKILL after selfStop, and SIGKILL from the kernel when the agent dies
// before it. The next agent begins the work anew.
func (r SelfRun) Run(ctx context.Context) (stdout []byte, err error) {
	cmd := exec.CommandContext(ctx, r.Self, r.Args...)
	var out bytes.Buffer
	var stderr tail
	cmd.Env, cmd.Stdout, cmd.Stderr = r.Env, &out, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = selfStop
	// The death signal comes when the thread that has started the child ends. Go ends a thread only with a goroutine
	// that is locked to it, and the agent has none. The group is for GiveWay.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := supervisor.GiveWay(cmd.Process.Pid, r.OOMScore, r.Nice); err != nil {
		r.Log.Warn("let a child give way", "child", r.Args[0], "err", err.Error())
	}
	if err := cmd.Wait(); err != nil {
		return nil, errors.Join(ctx.Err(), r.failed(err, string(stderr)))
	}
	return out.Bytes(), nil
}

// failed is what a run said of its end. One that said nothing has crashed: all that it wrote goes into the log,
// because a stack is no reason for people.
func (r SelfRun) failed(err error, stderr string) error {
	var said []string
	for line := range strings.Lines(stderr) {
		if words, ok := strings.CutPrefix(line, "quorate: "); ok {
			said = append(said, strings.TrimSpace(words))
		}
	}
	if len(said) > 0 {
		return errors.New(strings.Join(said, "; "))
	}
	line := supervisor.TellingLine(stderr)
	if line == "" {
		return err
	}
	r.Log.Warn("a child ended without saying why", "child", r.Args[0], "err", err.Error(), "stderr", stderr)
	return fmt.Errorf("%w: %s", err, line)
}

// tail is the end of what is written to it.
type tail []byte

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = (*t)[max(0, len(*t)-stderrTail):]
	return len(p), nil
}
