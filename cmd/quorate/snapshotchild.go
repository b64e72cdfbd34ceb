package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/supervisor"
)

// saveOOMScore and saveNice are how far a scheduled saving stands behind the agent, and so behind everything else on
// the machine.
const saveOOMScore, saveNice = 1000, 20

// saverChild saves the agent's snapshots in a process of its own, `quorate snapshot save`: what it takes in memory is
// gone with it, and a database that is damaged so that reading it ends a process does not end the agent. One processor
// and the lowest priority are enough.
func saverChild(log *slog.Logger, self, run string) func(ctx context.Context, why string) error {
	return func(ctx context.Context, why string) error {
		cmd := exec.CommandContext(ctx, self, "snapshot", "save", "--run-dir", run, "--why", why, "-o", "json")
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it clears away what is half done
		cmd.WaitDelay = 3 * time.Second
		// In the agent's cgroup: what ends the agent ends it. Its own process group is for GiveWay.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start the saving: %w", err)
		}
		if err := supervisor.GiveWay(cmd.Process.Pid, saveOOMScore, saveNice); err != nil {
			log.Warn("let the saving give way", "err", err.Error())
		}
		if err := cmd.Wait(); err != nil {
			return errors.Join(ctx.Err(), savingError(err, stderr.String()))
		}
		var s savedSnapshot
		if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
			return fmt.Errorf("decode what the saving said: %w", err)
		}
		log.Info("snapshot saved", "name", s.Name, "why", s.Why, "size", s.Size, "stored", s.Stored, "seconds", s.Took,
			"deleted", len(s.Deleted), "local", s.Local != "")
		if s.RetentionError != "" {
			log.Warn("old snapshots were not deleted", "err", s.RetentionError)
		}
		return nil
	}
}

// savingError is what the process said; its own end where it said nothing.
func savingError(err error, stderr string) error {
	text := strings.TrimSpace(stderr)
	if text == "" {
		return err
	}
	if first, _, many := strings.Cut(text, "\n"); many && strings.Contains(text, "goroutine ") {
		text = first // a crash: its stack is no reason for people
	}
	return errors.New(strings.ReplaceAll(text, "quorate: ", ""))
}
