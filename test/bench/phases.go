package main

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// phase is one step of a boot and how long it took.
type phase struct {
	Name string  `json:"name"`
	Took seconds `json:"took"`
}

// phaseLine is what the agent logs at the end of a phase.
var phaseLine = regexp.MustCompile(`msg="phase done" phase=("[^"]*"|\S+) took=(\S+)`)

// phasesIn reads the phases of the first boot in a log.
func phasesIn(log string) (out []phase) {
	for _, m := range phaseLine.FindAllStringSubmatch(log, -1) {
		took, err := time.ParseDuration(m[2])
		if err != nil {
			continue
		}
		name := strings.Trim(m[1], `"`)
		for _, p := range out {
			if p.Name == name {
				return out // a second boot begins
			}
		}
		out = append(out, phase{name, seconds(took.Seconds())})
	}
	return out
}

// withRest puts what the phases leave of the time to the last apiserver's readiness behind them: the start of the agent
// and, for the most part, the apiserver, whose phase ends a little after it is ready.
func (r round) withRest(phases []phase) []phase {
	rest := r.Last
	phases = slices.DeleteFunc(phases, func(p phase) bool { return p.Name == planePhase })
	for _, p := range phases {
		rest -= p.Took
	}
	return append(phases, phase{"apiserver", rest})
}

// planePhase is the agent's name for the start of the control plane.
const planePhase = "control plane"

// medianPhases is the median of each phase over the rounds, in the order of the first round.
func medianPhases(rounds []round) (out []phase) {
	if len(rounds) == 0 {
		return nil
	}
	for _, p := range rounds[0].Phases {
		var took []float64
		for _, r := range rounds {
			for _, q := range r.Phases {
				if q.Name == p.Name {
					took = append(took, float64(q.Took))
				}
			}
		}
		out = append(out, phase{p.Name, seconds(spreadOf(took).Median)})
	}
	return out
}
