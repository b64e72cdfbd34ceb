package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/supervisor"
)

// makingStop is how long the process that makes a directory may take to end when it is told to. What it has made by
// then is of no use.
const makingStop = 5 * time.Second

// makingOOMScore and makingNice put it behind the agent: where the memory is too small for both, the agent stays.
const makingOOMScore, makingNice = 500, 5

// makeDirectory has a directory made for a restore, by this program as `quorate make-directory`: etcd's code may end
// its process at any time. It dies with the agent, because the next one begins the work anew.
func (a *Agent) makeDirectory(ctx context.Context, work etcdmember.Making) error {
	path := filepath.Join(work.Scratch, "making.json")
	if err := work.Save(path); err != nil {
		return err
	}
	// Beside the work, which has room on its disk or cannot be done: a boot disk that is full must not keep a cluster
	// lost.
	log, err := os.OpenFile(filepath.Join(work.Scratch, "make-directory.log"), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("make the directory of a restore: %w", err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, a.cfg.Self, "make-directory", "--config", path)
	cmd.Env, cmd.Dir, cmd.Stderr = a.cfg.Env, work.Scratch, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = makingStop
	err = cmd.Start()
	if err == nil {
		if err := supervisor.GiveWay(cmd.Process.Pid, makingOOMScore, makingNice); err != nil {
			a.cfg.Log.Warn("let the making of a directory give way", "err", err.Error())
		}
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("make the directory of a restore: %w: %s (%s has all of it)", err, lastLine(log), log.Name())
	}
	return nil
}

// lastLine is the end of what a process complained of.
func lastLine(f *os.File) string {
	const most = 4 << 10
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	b := make([]byte, min(info.Size(), most))
	n, _ := f.ReadAt(b, max(0, info.Size()-most))
	lines := bytes.Split(bytes.TrimSpace(b[:n]), []byte("\n"))
	return string(lines[len(lines)-1])
}
