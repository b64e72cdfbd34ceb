package observer

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/cmd/quorate/tone"
	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/replica"
)

// Show prints a verdict for a person, on one screen.
func Show(w io.Writer, v health.Verdict, now time.Time) {
	terminal.PaintText(w, tone.Of(v.State), v.Headline())
	terminal.PrintText(w, "", healthDetails(v, now))
	var rows []terminal.Row
	for _, r := range v.Replicas {
		reported := "never"
		if r.Age != nil {
			reported = terminal.Age(now, now.Add(-time.Duration(*r.Age*float64(time.Second)))) + " ago"
		}
		role := terminal.OrNone(r.Role)
		if r.Leads {
			role += ", leader"
		}
		rows = append(rows,
			terminal.Row{Cells: []string{r.Name, r.Zone, r.Text(), role, reported,
				terminal.OrNone(strings.Join(r.Waits, ", "))}, Tones: map[int]terminal.Tone{2: tone.OfReplica(r.State)}})
	}
	terminal.PrintTableBelow(w, []string{"REPLICA", "ZONE", "STATE", "ETCD", "REPORTED", "WAITS"}, rows)
	for n, f := range v.Findings {
		showFinding(w, n+1, f)
	}
	showOrdersInForce(w, v.Orders)
}

// healthDetails are the facts that are worth a line also where all is well.
func healthDetails(v health.Verdict, now time.Time) string {
	var parts []string
	if text := v.Voters.ZonesText(); text != "" {
		parts = append(parts, text)
	}
	if v.Leader != "" {
		parts = append(parts, v.Leader+" leads etcd.")
	}
	for _, r := range v.Replicas {
		if len(r.Elected) > 0 {
			parts = append(parts, fmt.Sprintf("%s leads %s.", r.Name, strings.Join(r.Elected, ", ")))
		}
	}
	if e := v.Endpoint; e != nil && e.Serves() {
		parts = append(parts, fmt.Sprintf("The endpoint %s is ready (%.0fms).", e.Address, e.Took*1000))
	}
	switch {
	case v.Snapshot != nil:
		parts = append(parts, fmt.Sprintf("The newest snapshot is %s old.", terminal.Age(now, *v.Snapshot)))
	case v.Voters.Known:
		parts = append(parts, "There is no snapshot yet.")
	}
	if text := bootedAgain(v.Replicas, now); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// night is how long ago a boot is worth a word to who looks at a cluster that is well again.
const night = 24 * time.Hour

// bootedAgain names the replicas that booted again not long ago: all may be well by now, and somebody has to know.
func bootedAgain(list []health.Replica, now time.Time) string {
	var names []string
	for _, r := range list {
		if !r.BootedAgain.IsZero() && now.Sub(r.BootedAgain) < night {
			names = append(names, fmt.Sprintf("%s %s ago", r.Name, terminal.Age(now, r.BootedAgain)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("Booted again: %s; \"quorate why\" says how they had ended.", strings.Join(names, ", "))
}

// showFinding prints a cause, what to do about it, and what follows from it.
func showFinding(w io.Writer, number int, f health.Finding) {
	head := fmt.Sprintf("%s: %s", strings.ToUpper(string(f.Level)), f.Name)
	if len(f.Replicas) > 0 {
		head += " on " + strings.Join(f.Replicas, ", ")
	}
	fmt.Fprintf(w, "\n%d. ", number)
	terminal.Paint(w, tone.OfLevel(f.Level), head)
	fmt.Fprintln(w)
	terminal.PrintText(w, "   ", f.What)
	if f.Next != "" {
		terminal.PrintText(w, "   ", "Next: "+f.Next)
	}
	for _, command := range f.Remedy {
		fmt.Fprintln(w, "     "+command)
	}
	if len(f.Consequences) > 0 {
		terminal.PrintText(w, "   ", "It also causes: "+strings.Join(consequences(f), ", ")+".")
	}
	fmt.Fprintln(w, "   See "+f.Runbook)
}

func consequences(f health.Finding) (out []string) {
	for _, c := range f.Consequences {
		text := c.Name
		if len(c.Replicas) > 0 && !slices.Equal(c.Replicas, f.Replicas) {
			text += " on " + strings.Join(c.Replicas, ", ")
		}
		out = append(append(out, text), consequences(c)...)
	}
	return out
}

func showOrdersInForce(w io.Writer, list []health.Order) {
	var rows []terminal.Row
	for _, o := range list {
		rows = append(rows, terminal.Row{Cells: []string{strconv.FormatUint(o.Number, 10), o.What, o.By,
			terminal.When(o.Since)}, Below: o.Reason})
	}
	terminal.PrintTableBelow(w, []string{"ORDER IN FORCE", "WHAT", "BY", "SINCE"}, rows)
}

// commandsFor are the commands that a person pastes: gcloud's for a project, or, where the Compute API is a stand-in's,
// the demo's. Without a project gcloud takes the person's own.
func commandsFor(c *replica.Cluster, f *cluster.Flags, project string) health.Commands {
	if c.Compute.Endpoint != "" {
		return health.Commands{
			Quorate: f.Again,
			StartVM: func(p replica.Place) string { return "bin/localgce vm start " + p.Name },
			ResetVM: func(p replica.Place) string {
				return "bin/localgce vm kill " + p.Name + "; bin/localgce vm start " + p.Name
			},
			RecreateVM: func(p replica.Place) string {
				create := fmt.Sprintf("bin/localgce do vm/create vm=%s zone=%s", p.Name, p.Zone)
				return create + " disk=" + p.Name + "-data || " + create // its former disk, where that is left
			},
			On: func(p replica.Place, command string) string {
				return "bin/localgce vm exec " + p.Name + " -- " + command
			},
		}
	}
	if project != "" {
		project = " --project " + project
	}
	at := func(verb string) func(replica.Place) string {
		return func(p replica.Place) string {
			return fmt.Sprintf("gcloud compute instances %s %s --zone %s%s", verb, p.Name, p.Zone, project)
		}
	}
	return health.Commands{Quorate: f.Again, StartVM: at("start"), ResetVM: at("reset"),
		RecreateVM: at("create --source-instance-template TEMPLATE"),
		On: func(p replica.Place, command string) string {
			return fmt.Sprintf("gcloud compute ssh %s --zone %s%s -- sudo %s", p.Name, p.Zone, project, command)
		}}
}
