// Package show says in sentences what package fleet does: a plan with what each of its steps risks, how far a command
// has come, and what there is of a cluster.
//
//	plan.go       a plan, before somebody agrees to it
//	progress.go   the steps as they are taken
//	list.go       the replicas and the disks
//
// It decides nothing, and knows neither a terminal nor its width.
package show

import (
	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/record"
)

// Text takes a paragraph, and what each of its lines begins with. It breaks it where the lines are too long.
type Text func(indent, text string)

// Answer is what a command prints in place of sentences. Its JSON keys are stable.
type Answer struct {
	Command string `json:"command"`
	Cluster string `json:"cluster"`
	plan.Plan
	// Checks are what of the project is not as it should be; of commands that make masters.
	Checks []record.Finding `json:"checks,omitempty"`
	// Done: the steps were taken, or there was none to take.
	Done bool `json:"done"`
}
