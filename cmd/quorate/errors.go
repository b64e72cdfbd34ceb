package main

import (
	"errors"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/replica"
)

// isConfigError reports whether the Cluster document is at fault: one of ours, or the agent's own reading of it.
func isConfigError(err error) bool {
	var ours *configError
	var faults replica.Faults
	return errors.As(err, &ours) || errors.As(err, &faults)
}

// exitCauses are the causes that have an exit code of their own, the first match counting.
var exitCauses = []struct {
	cause error
	code  int
}{
	{etcdmember.ErrRemoved, exitRemoved},
	{agent.ErrNoAgent, exitNoAgent},
	{agent.ErrNoConfiguration, exitConfig},
	{agent.ErrPreflight, exitPreflight},
	{errRecord, exitRecord},
}
