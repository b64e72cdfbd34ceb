package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/fleet/plan"
)

// Progress tells how far a plan has come that is being carried out.
type Progress struct {
	plan plan.Plan
	out  Text
}

// NewProgress tells of a plan that somebody has agreed to.
func NewProgress(p plan.Plan, out Text) *Progress { return &Progress{p, out} }

// Tell says one event, for fleet.Talk.
func (p *Progress) Tell(e fleet.Event) {
	const indent = "       "
	switch {
	case e.Begins != nil:
		p.out("", p.number(*e.Begins)+e.Begins.What)
	case e.Ended != nil:
		p.out(indent, fmt.Sprintf("Done after %s.", e.Took.Round(time.Second)))
	default:
		p.out(indent, strings.TrimSuffix(e.Waits, ".")+".")
	}
}

// number is where in the plan a step stands; a step that the plan did not have, as the cluster has changed meanwhile,
// has none.
func (p *Progress) number(s plan.Step) string {
	at := slices.IndexFunc(p.plan.Steps, func(o plan.Step) bool {
		return o.Act == s.Act && o.Place == s.Place && o.InstanceID == s.InstanceID && o.DiskID == s.DiskID &&
			o.Replicas == s.Replicas && o.Kind == s.Kind && o.Resource == s.Resource
	})
	if at < 0 {
		return "[also] "
	}
	return fmt.Sprintf("[%d/%d] ", at+1, len(p.plan.Steps))
}
