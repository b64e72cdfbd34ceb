package member

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

func TestAMemberAloneWaitsForNoElectionTimeout(t *testing.T) {
	cfg, _ := newTestMember(t)
	// Raft's own timer would take 3 to 30 s.
	cfg.Heartbeat, cfg.Election = 3*time.Second, 30*time.Second
	for _, round := range []string{"first boot", "restart"} {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		begin := time.Now()
		go func() { done <- Run(ctx, cfg, slog.New(slog.DiscardHandler)) }()
		waitReady(t, cfg.StatusSocket)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("%s: ready after %s", round, took)
		} else {
			t.Logf("%s: ready after %s", round, took)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
