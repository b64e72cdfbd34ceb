package show

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/fleet/plan"
)

// Plan says why VMs are made anew, and what will be done, step by step: how the cluster stands then, what clients
// notice, how it is taken back.
func Plan(p plan.Plan, out Text) {
	for _, d := range p.Differences {
		out("", fmt.Sprintf("%s: %s is %s; %s is wanted.", d.Replica, d.Field, orNothing(d.Found), orNothing(d.Wanted)))
	}
	for n, s := range p.Steps {
		out("", fmt.Sprintf("%d. %s", n+1, s.What))
		out("   ", strings.Join(risk(s), " "))
	}
	for _, w := range p.Warnings {
		out("", "Note: "+w)
	}
}

// risk is what a step risks, in sentences.
func risk(s plan.Step) (out []string) {
	r := s.Risk
	switch {
	case r.Members == 0 && r.Voters == 0:
		out = append(out, "Then etcd has no member.")
	default:
		out = append(out, fmt.Sprintf("Then etcd has %s, %s: %s.", counted(r.Members, "member", "members"),
			counted(r.Voters, "voter", "voters"), margin(r.Survives)))
	}
	if r.Clients == "" {
		out = append(out, "Clients notice nothing.")
	} else {
		out = append(out, "Clients: "+r.Clients)
	}
	switch {
	case r.Undo != "":
		out = append(out, "To undo it: "+r.Undo)
	case s.Act != plan.AwaitJoined && s.Act != plan.AwaitAttached && s.Act != plan.AwaitHealthy:
		out = append(out, "It cannot be undone.")
	}
	return out
}

// margin says how far the quorum is from being lost.
func margin(survives int) string {
	switch {
	case survives < 0:
		return "that is no quorum"
	case survives == 0:
		return "no further voter may fail"
	case survives == 1:
		return "one further voter may fail"
	}
	return fmt.Sprintf("%d further voters may fail", survives)
}

func orNothing(s string) string {
	if s == "" {
		return "not given"
	}
	return s
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
