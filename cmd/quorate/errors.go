package main

import (
	"errors"
	"syscall"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

// The exit codes, for scripts that branch on them. They are part of the interface: docs/runbook.md lists them.
const (
	exitOK       = 0
	exitFailure  = 1 // anything without a code of its own
	exitUsage    = 2 // a mistake on the command line
	exitConfig   = 3 // the Cluster document is missing or wrong
	exitMetadata = 4 // the metadata server is away, does not answer in time, or is something else
	// the record cannot be reached, read or written, lacks what the command needs, or holds what is damaged
	exitRecord  = 5
	exitSeal    = 6  // the seal key does not open the bundle
	exitNoRoom  = 7  // the disk is full
	exitNotRoot = 8  // the command needs root
	exitNoAgent = 9  // `status`, `etcd`: no agent answers
	exitRemoved = 10 // `run-etcd`: the cluster has removed this member
	exitRunning = 11 // `agent`: another agent runs on this machine
	exitFile    = 12 // a file or folder that was named is missing, exists already, or cannot be used
	// a change of the masters is refused as the cluster is now: it would cost the quorum, or who the members are is not
	// known
	exitRefused = 13
	exitStopped = 14 // a change of the masters stopped before its end; running it again goes on
)

// What `health` and `status` found, where it is not well.
const (
	exitDegraded   = 1
	exitNotServing = 2 // also: it is not known whether it does
)

// errRunning says that this machine has an agent: a second one would take its socket and start a second set of
// children.
var errRunning = errors.New("another agent runs on this machine")

// exitCauses are the causes that have an exit code of their own, the first match counting: what a person can put right
// first comes before what follows from it.
var exitCauses = []struct {
	cause error
	code  int
}{
	{member.ErrRemoved, exitRemoved},
	{agent.ErrNoAgent, exitNoAgent},
	{errRunning, exitRunning},
	{agent.ErrNoConfiguration, exitConfig},
	{bucket.ErrSealKey, exitSeal},
	{record.ErrRecord, exitRecord},
	{gce.ErrMetadata, exitMetadata},
	{syscall.ENOSPC, exitNoRoom},
}

// exitCode finds the code of an error.
func exitCode(err error) int {
	var usage *fault.UsageError
	var refusal *order.Refusal
	var notRoot *fault.NotRootError
	var verdict *verdictError
	var noPlan *plan.Refusal
	switch {
	case errors.As(err, &verdict):
		return verdict.code()
	case errors.Is(err, fleet.ErrStopped):
		return exitStopped
	case errors.As(err, &noPlan):
		return refusedCode(noPlan)
	case errors.As(err, &usage), errors.As(err, &refusal):
		return exitUsage
	case errors.As(err, &notRoot):
		return exitNotRoot
	case isConfigError(err):
		return exitConfig
	}
	for _, c := range exitCauses {
		if errors.Is(err, c.cause) {
			return c.code
		}
	}
	var file *fault.FileError
	if errors.As(err, &file) {
		return exitFile
	}
	return exitFailure
}

// refusedCode is the code of a plan that is not made: the command line is at fault, the record, or how the cluster is.
func refusedCode(r *plan.Refusal) int {
	switch r.Name {
	case plan.NoSuchReplica, plan.WrongZone, plan.NameTaken, plan.TooManyReplicas, plan.LastReplica,
		plan.WouldInterrupt:
		return exitUsage
	case plan.RecordUnread, plan.RecordNotBegun:
		return exitRecord
	}
	return exitRefused
}

// isConfigError reports whether the Cluster document is at fault: one of ours, or the agent's own reading of it.
func isConfigError(err error) bool {
	var ours *fault.ConfigError
	var faults replica.Faults
	return errors.As(err, &ours) || errors.As(err, &faults)
}

// verdictError carries a verdict that was printed to its exit code: of "health", which is about the cluster, and of
// "status", which is about this master.
type verdictError struct{ state health.State }

func (e *verdictError) Error() string { return "found " + string(e.state) }

// code is the one for degraded, or the one for not serving and not known.
func (e *verdictError) code() int {
	if e.state == health.Degraded {
		return exitDegraded
	}
	return exitNotServing
}

// verdictOf is a verdict as an error; nil: all is well.
func verdictOf(s health.State) error {
	if s == health.Well {
		return nil
	}
	return &verdictError{s}
}

// errorReport is an error as JSON and YAML show it, on standard error. Its keys are stable.
type errorReport struct {
	Error struct {
		// Message is what a person reads, Code the exit code.
		Message string `json:"message"`
		Code    int    `json:"code"`
		// Faults are those of a Cluster document, one by one.
		Faults []faultReport `json:"faults,omitempty"`
	} `json:"error"`
}

// faultReport is one fault of a document; what is not known of it is left out.
type faultReport struct {
	Source  string `json:"source,omitempty"`
	Line    int    `json:"line,omitempty"`
	Field   string `json:"field,omitempty"`
	Found   string `json:"found,omitempty"`
	Allowed string `json:"allowed,omitempty"`
	// Message is the whole line.
	Message string `json:"message"`
}

func reportOf(err error) errorReport {
	var r errorReport
	r.Error.Message, r.Error.Code = err.Error(), exitCode(err)
	var faults replica.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			r.Error.Faults = append(r.Error.Faults,
				faultReport{f.Source, f.Line, f.Field, f.Found, f.Allowed, f.Error()})
		}
	}
	return r
}
