package main

import (
	"testing"

	"github.com/quorate/quorate/internal/health"
)

func TestTheVerdictIsTheExitCode(t *testing.T) {
	for state, want := range map[health.State]int{health.Degraded: 1, health.NotServing: 2,
		health.Unknown: 2} {
		if got := exitCode(verdictOf(state)); got != want {
			t.Errorf("%s: %d, want %d", state, got, want)
		}
	}
	if err := verdictOf(health.Well); err != nil {
		t.Error(err)
	}
}
