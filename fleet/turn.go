package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

const (
	// leaderLimit is how long a report of the leader is waited for, and anything else that passes by itself: agents
	// report each 30 s.
	leaderLimit = report.Period + 15*time.Second
	// joinLimit bounds the wait for a new replica: the VM's boot, a copy of the database, its promotion.
	joinLimit = 15 * time.Minute
	// wellLimit bounds the wait, once a plan was approved, for a replica that is not well: a component that was started
	// again next to others that were, its report, which is up to half a minute old, and a machine that is slow. Before,
	// leaderLimit does: who asks for a plan is not kept waiting for a replica that is broken.
	wellLimit = 5 * time.Minute
	// leaveLimit bounds the wait for a member to leave: a snapshot may come first, and the hand-over.
	leaveLimit = 10 * time.Minute
	// attachLimit bounds the wait for an agent to put its VM into a group that was just made: it asks each half minute,
	// and Google takes as long.
	attachLimit = 3 * time.Minute
)

// turn is what follows from one reading: a step to take, something to wait for, an error, or, with none of these, the
// end.
type turn struct {
	step *plan.Step
	wait *wait
	err  error
}

// wait is something that is waited for.
type wait struct {
	// key is the same as long as it is the same wait. What says it for a person.
	key, what string
	limit     time.Duration
	// otherwise is the error when it does not come.
	otherwise error
	// step is the step that waits; nil: the wait comes before a step.
	step *plan.Step
}

// next decides what follows from a reading and the plan that was made by it.
func next(w plan.Wish, r Reading, p plan.Plan, err error) turn {
	var refusal *plan.Refusal
	switch {
	case r.fault != nil:
		return turn{wait: &wait{key: "read", what: "cannot read it: " + r.fault.Error(), limit: leaderLimit,
			otherwise: r.fault}}
	case errors.As(err, &refusal) && passes(refusal):
		limit := leaderLimit
		if refusal.Name == plan.ListContradicts { // by the last report of one that is gone, as long as it counts
			limit += health.SilentAfter
		}
		return turn{wait: &wait{key: "refusal", what: refusal.Why, limit: limit, otherwise: refusal}}
	case err != nil:
		return turn{err: err}
	case len(p.Steps) == 0:
		return turn{}
	}
	s := p.Steps[0]
	switch {
	case waits(s.Act):
		return turn{wait: r.awaits(s)}
	case takesAway(s) && w.Kind != plan.Delete && !r.Fresh:
		return turn{wait: &wait{key: "leader", what: "waiting for a new report of etcd's leader", limit: leaderLimit,
			otherwise: &plan.Refusal{Name: plan.MembersUnknown,
				Why:  "etcd's leader has not reported since the step before, so nothing is taken away.",
				Next: "'quorate health' says what is wrong; then run the command again."}}}
	}
	return turn{step: &s}
}

// passes reports whether what is refused now may be granted in a moment: a leader is elected, a list catches up.
func passes(r *plan.Refusal) bool {
	return slices.Contains([]string{plan.MembersUnknown, plan.ListContradicts, plan.ListIncomplete,
		plan.RecordUnread}, r.Name)
}

// untilWell waits for a replica that is not well, or that the leader does not hear of at the moment, in place of
// refusing: one that has just come back, or that another's absence has touched, gets well by itself.
func (r Reading) untilWell(t turn, limit time.Duration) turn {
	var refusal *plan.Refusal
	if !errors.As(t.err, &refusal) || refusal.Name != plan.NotWell && refusal.Name != plan.WouldLoseQuorum {
		return t
	}
	what, tells := strings.TrimSuffix(refusal.Why, "."), refusal.Why
	if refusal.Place != (replica.Place{}) {
		what = refusal.Place.String() + " to get well: " + r.joins(refusal.Place)
		tells = "waiting for " + what
	}
	return turn{wait: &wait{key: "well", what: tells, limit: limit, otherwise: fmt.Errorf(
		"waited %s for %s. %w", limit, what, refusal)}}
}

// awaits is the wait that a step is.
func (r Reading) awaits(s plan.Step) *wait {
	w := &wait{key: string(s.Act) + " " + s.Place.String(), step: &s}
	switch s.Act {
	case plan.AwaitLeft:
		w.limit, w.what = leaveLimit, r.leaves(s.Place)
	case plan.AwaitAttached:
		w.limit, w.what = attachLimit, "its agent has not attached it yet"
	case plan.AwaitHealthy:
		w.limit, w.what = attachLimit, "the load balancer's health check does not pass it yet"
	default:
		w.limit, w.what = joinLimit, r.joins(s.Place)
	}
	w.otherwise = fmt.Errorf("waited %s for %s: %s; 'quorate health' says what is wrong; %w", w.limit, s.Place, w.what,
		ErrStopped)
	if s.Act == plan.AwaitHealthy {
		w.otherwise = fmt.Errorf("waited %s for the load balancer's health check to pass %s, which is ready: its probes do "+
			"not arrive, or its agent could not attach it. They come from %s and need a firewall rule; 'quorate gce check' "+
			"judges the rules, and 'quorate health' says what its agent waits for; %w", w.limit, s.Place,
			strings.Join(r.Surroundings.Probes, ", "), ErrStopped)
	}
	return w
}

// joins says how far a replica is that is to join.
func (r Reading) joins(p replica.Place) string {
	vm, found := r.vm(p)
	s, reported := r.reportOf(p, vm)
	switch {
	case !found:
		return "the Compute API does not list its VM yet"
	case vm.Status != "RUNNING":
		return "its VM is " + vm.Status
	case !reported:
		return "its VM runs, and its agent has not reported yet"
	case len(s.Waits) > 0:
		return "it waits: " + waitText(s.Waits)
	case !s.Ready:
		return "it boots, phase " + s.Phase
	case r.Members.Unknown != "":
		return r.Members.Unknown
	}
	for _, m := range r.Members.List {
		switch {
		case m.Place != p:
		case !m.Heard:
			return "etcd's leader does not hear of it"
		case !m.Voter && r.Record.Wanted > 2:
			return "it is a learner, and will be promoted"
		}
	}
	if down := conditionOf(s.Report).Down; len(down) > 0 {
		return "not ready: " + strings.Join(down, ", ")
	}
	return "it is nearly there"
}

// leaves says how far a replica is that is to leave.
func (r Reading) leaves(p replica.Place) string {
	for _, s := range r.Reports {
		if s.Own().Leader && s.Phase != stopping && len(s.Waits) > 0 {
			return "etcd's leader waits: " + waitText(s.Waits)
		}
	}
	for _, l := range r.Record.Leaves {
		if l.Place == p {
			return fmt.Sprintf("order %d is not done yet", l.Number)
		}
	}
	return "its member is listed"
}

func waitText(list []replica.Wait) string {
	var out []string
	for _, w := range list {
		out = append(out, w.Name+" ("+strings.TrimSuffix(w.Reason, ".")+")")
	}
	return strings.Join(out, "; ")
}

func (r Reading) vm(p replica.Place) (plan.VM, bool) {
	at := slices.IndexFunc(r.Inventory.VMs, func(v plan.VM) bool { return v.Place == p })
	if at < 0 {
		return plan.VM{}, false
	}
	return r.Inventory.VMs[at], true
}

// reportOf is the report of a VM, and not of one that had its name before.
func (r Reading) reportOf(p replica.Place, vm plan.VM) (report.Sighting, bool) {
	at := slices.IndexFunc(r.Reports, func(s report.Sighting) bool {
		return s.Place == p && s.InstanceID == vm.InstanceID
	})
	if at < 0 {
		return report.Sighting{}, false
	}
	return r.Reports[at], true
}
