package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

// newUp makes the project and leaves it running.
func newUp() *cobra.Command {
	f := &upFlags{}
	cmd := &cobra.Command{
		Use: "up [--vm NAME@ZONE ...]", Short: "Make the project and start its VMs", Args: exactly(cobra.NoArgs),
		Long: `Make the project, with its bucket, and start its VMs; leave it running.

What an earlier project of the same state folder left on the machine is removed first. VMs that it knew come back with
their instance ids and data disks.`,
		Example: `  localgce up --vm master-1@us-central1-a --vm master-2@us-central1-b --cluster cluster.yaml \
    --bind bin:/usr/local/bin:ro`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, err := f.config(state(cmd))
			if err != nil {
				return err
			}
			if os.Geteuid() != 0 {
				return localgce.ErrNotRoot
			}
			started := time.Now()
			out := cmd.OutOrStdout()
			if err := detach(cmd.Context(), conf, func(line string) { fmt.Fprintln(out, "  "+line) }); err != nil {
				return err
			}
			fmt.Fprintf(out, "The project is up after %.1f s.\n\n", time.Since(started).Seconds())
			return printStatus(cmd)
		},
	}
	f.register(cmd)
	return cmd
}

// message is a line from the project's process to the `up` that started it.
type message struct {
	Progress string `json:"progress,omitempty"`
	Error    string `json:"error,omitempty"`
	Code     int    `json:"code,omitempty"`
	Up       bool   `json:"up,omitempty"`
}

// remoteError is an error of the project's process.
type remoteError struct {
	Text string
	Code int
}

func (e *remoteError) Error() string { return e.Text }

// messageFD is where the project's process finds its pipe to `up`.
const messageFD = 3

// detach starts `localgce serve` in a session of its own and returns when the project is up.
func detach(ctx context.Context, conf localgce.Config, progress func(string)) error {
	conf.State, _ = filepath.Abs(conf.State) // serve runs elsewhere
	body, err := json.Marshal(conf)
	if err != nil {
		return fmt.Errorf("hand over the configuration: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(conf.State, "logs"), 0o755); err != nil {
		return fmt.Errorf("make state folder: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(conf.State, "logs", "localgce.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o644)
	if err != nil {
		return fmt.Errorf("open the project's log: %w", err)
	}
	defer log.Close()
	messages, end, err := os.Pipe()
	if err != nil {
		return err
	}
	defer messages.Close()
	cmd := exec.Command("/proc/self/exe", "serve", "--state", conf.State)
	cmd.Args[0] = "localgce" // for ps
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = "/", bytes.NewReader(body), log, log
	cmd.ExtraFiles = []*os.File{end} // messageFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	end.Close()
	if err != nil {
		return fmt.Errorf("start the project's process: %w", err)
	}
	return follow(ctx, cmd.Process, messages, progress)
}

// follow reads messages until the project is up or has failed. If ctx ends first, the project is asked to end.
func follow(ctx context.Context, process *os.Process, messages io.Reader, progress func(string)) error {
	defer context.AfterFunc(ctx, func() { _ = process.Signal(syscall.SIGTERM) })()
	lines := bufio.NewScanner(messages)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return fmt.Errorf("read the project's progress: %w", err)
		}
		switch {
		case m.Up:
			return nil
		case m.Error != "":
			return &remoteError{m.Error, m.Code}
		}
		progress(m.Progress)
	}
	return errors.New("the project's process ended without a word; see logs/localgce.log in the state folder")
}
