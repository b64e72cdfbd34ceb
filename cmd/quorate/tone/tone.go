// Package tone says how good or bad a state is, for the color in which a terminal shows it. It only computes.
package tone

import (
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/supervisor"
)

// Of is the tone of a verdict on a cluster or a master.
func Of(s health.State) terminal.Tone {
	switch s {
	case health.Well:
		return terminal.Good
	case health.NotServing:
		return terminal.Bad
	}
	return terminal.Warn
}

// OfLevel is the tone of a finding. A note asks for nothing.
func OfLevel(l health.Level) terminal.Tone {
	switch l {
	case health.Broken:
		return terminal.Bad
	case health.Note:
		return terminal.NoTone
	}
	return terminal.Warn
}

// OfWait is the tone of something that a master waits for, by its name.
func OfWait(name string) terminal.Tone {
	if health.Degrades(name) {
		return terminal.Warn
	}
	return terminal.NoTone
}

// OfReplica is the tone of a replica's state.
func OfReplica(s health.ReplicaState) terminal.Tone {
	switch s {
	case health.ReplicaReady:
		return terminal.Good
	case health.ReplicaUnheard, health.ReplicaCutOff:
		return terminal.Bad
	}
	return terminal.Warn
}

// OfComponent is the tone of a component's state.
func OfComponent(s supervisor.State) terminal.Tone {
	switch s {
	case supervisor.Ready:
		return terminal.Good
	case supervisor.Backoff, supervisor.Parked:
		return terminal.Bad
	}
	return terminal.Warn
}

// OfListed is the tone of a replica of which a list says whether it is ready.
func OfListed(r fleet.ListedReplica) terminal.Tone {
	switch {
	case r.Role == fleet.RoleUnknown:
		return terminal.NoTone
	case r.Ready:
		return terminal.Good
	}
	return terminal.Warn
}
