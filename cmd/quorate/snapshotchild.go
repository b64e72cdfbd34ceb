package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/quorate/quorate/agent"
)

// saveOOMScore and saveNice are how far a scheduled saving stands behind the agent, and so behind everything else on
// the machine.
const saveOOMScore, saveNice = 1000, 20

// saverChild saves the agent's snapshots in a process of its own, `quorate snapshot save`: what it takes in memory is
// gone with it. One processor and the lowest priority are enough.
func saverChild(log *slog.Logger, self, run string) func(ctx context.Context, why string) error {
	return func(ctx context.Context, why string) error {
		stdout, err := agent.SelfRun{Self: self, Env: append(os.Environ(), "GOMAXPROCS=1"),
			Args:     []string{"snapshot", "save", "--run-dir", run, "--why", why, "-o", "json"},
			OOMScore: saveOOMScore, Nice: saveNice, Log: log}.Run(ctx)
		if err != nil {
			return err
		}
		var s savedSnapshot
		if err := json.Unmarshal(stdout, &s); err != nil {
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
