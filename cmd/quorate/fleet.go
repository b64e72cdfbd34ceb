package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/fleet/show"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// fleetFlags are what the commands take that make and delete VMs.
type fleetFlags struct {
	cluster.Flags
	output      string
	yes, dryRun bool
	// skipChecks leaves out the checks of the project.
	skipChecks bool
	// number is the project's; empty: it is asked for where it is needed.
	number string
}

func (f *fleetFlags) add(cmd *cobra.Command) {
	f.addDocument(cmd)
	command.AddOutput(cmd, &f.output)
	terminal.AddYes(cmd, &f.yes)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan, and change nothing")
}

// addDocument adds the flags of a document that has to be a file.
func (f *fleetFlags) addDocument(cmd *cobra.Command) {
	f.Flags.Add(cmd)
	config := cmd.Flags().Lookup("config")
	config.Usage, config.DefValue = "the file of the Cluster document; "+cluster.ConfigVariable+" names it too", ""
}

// planText ends the help of each command that carries out a plan.
const planText = `

It prints a plan and asks before it carries it out: with each step how many members and voters etcd has then, what
clients notice, and how it is taken back. After an interruption or a failure run the command again: it goes on where it
stopped.`

// fleetCluster is the record and the reports of one bucket.
type fleetCluster struct {
	*bucket.Store
	reports *bucket.Reports
}

// All implements fleet.Cluster.
func (c fleetCluster) All(ctx context.Context) ([]report.Sighting, error) { return c.reports.All(ctx) }

// open reads the document and makes the clients; it asks nobody yet.
func (f *fleetFlags) open() (*fleet.Fleet, error) {
	c, document, err := f.loadFile()
	if err != nil {
		return nil, err
	}
	if c.GCE == nil {
		return nil, fault.Config("%s: it has no section gce, which says what masters' VMs are made of",
			f.Config)
	}
	conf := gce.ComputeConfig{Project: c.GCE.Project, Cluster: c.Name, Region: c.GCE.Region,
		Endpoint: c.Compute.Endpoint, Client: gce.UserClient()}
	cloud, err := gce.NewOperator(conf)
	if err != nil {
		return nil, err
	}
	store, err := cluster.OpenRecord(c)
	if err != nil {
		return nil, err
	}
	reports, err := cluster.OpenReports(c)
	if err != nil {
		return nil, err
	}
	return &fleet.Fleet{Cloud: cloud, Cluster: fleetCluster{store, reports}, Document: c, By: cluster.GivenBy(),
		Metadata: map[string]string{agent.ClusterAttribute: document}, DataDevice: dataDevice(c),
		Begin: func(ctx context.Context) error { return f.begin(ctx, c, conf) }}, nil
}

// loadFile is the document, and its text, which becomes the masters' instance attribute: so it is a file.
func (f *fleetFlags) loadFile() (*replica.Cluster, string, error) {
	if f.Config == cluster.StandardInput || !f.IsNamed() {
		return nil, "", fault.Usage("name the file of the Cluster document with --config: it becomes the " +
			"instance attribute of the masters")
	}
	c, err := f.Load()
	if err != nil {
		return nil, "", err
	}
	s, err := cluster.ReadSource(f.Config)
	if err != nil {
		return nil, "", fault.Config("read configuration: %w", err)
	}
	return c, string(s.Data), nil
}

// begin writes the inception, as `record init` does.
func (f *fleetFlags) begin(ctx context.Context, c *replica.Cluster, conf gce.ComputeConfig) error {
	number := f.number
	if number == "" {
		var err error
		if number, err = gce.ProjectNumber(ctx, conf); err != nil {
			return fmt.Errorf("%w; --project-number gives it", err)
		}
	}
	return initRecord(ctx, io.Discard, c, c.GCE.Region, number)
}

// carryOut plans a wish, shows the plan, asks, and has it carried out.
func (f *fleetFlags) carryOut(cmd *cobra.Command, w plan.Wish, ask func(plan.Plan) error) error {
	fl, err := f.open()
	if err != nil {
		return err
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	text := func(w io.Writer) show.Text { return func(indent, text string) { terminal.PrintText(w, indent, text) } }
	if f.output != "" {
		out = io.Discard // the answer alone is printed there
	}
	answer := show.Answer{Command: string(w.Kind), Cluster: fl.Document.Name}
	progress := show.NewProgress(plan.Plan{}, text(out)) // of what is waited for before there is a plan
	tell := func(e fleet.Event) { progress.Tell(e) }
	if answer.Checks, err = f.checkProject(ctx, fl.Document, w); err != nil {
		return f.notReady(cmd, answer, err)
	}
	if f.dryRun {
		answer.Plan, err = fl.Plan(ctx, w, tell)
		answer.Done = len(answer.Steps) == 0
	} else {
		answer.Plan, err = fl.Run(ctx, w, fleet.Talk{
			Approve: func(p plan.Plan) error {
				to := out
				if f.output != "" && !f.yes {
					to = cmd.ErrOrStderr() // whoever is asked has to see it
				}
				sayChecks(to, answer.Checks)
				show.Plan(p, text(to))
				fmt.Fprintln(to)
				progress = show.NewProgress(p, text(out))
				return ask(p)
			},
			Tell: tell})
		answer.Done = err == nil
	}
	if err != nil {
		return err
	}
	return f.answer(cmd, answer, func(w io.Writer) { f.sayEnd(w, answer, text(w)) })
}

// notReady shows why the project's checks end a command.
func (f *fleetFlags) notReady(cmd *cobra.Command, a show.Answer, refused error) error {
	if len(a.Checks) == 0 {
		return refused
	}
	return cmp.Or(f.answer(cmd, a, func(w io.Writer) { sayChecks(w, a.Checks) }), refused)
}

// answer prints what a command comes to: as JSON, or in words.
func (f *fleetFlags) answer(cmd *cobra.Command, a show.Answer, inWords func(io.Writer)) error {
	if a.Steps == nil {
		a.Steps = []plan.Step{}
	}
	return terminal.PrintAs(cmd.OutOrStdout(), f.output, a, inWords)
}

// sayEnd is what a person reads at the end of a command.
func (f *fleetFlags) sayEnd(w io.Writer, a show.Answer, text show.Text) {
	switch {
	case len(a.Steps) == 0:
		text("", "Nothing is left to do.")
		for _, w := range a.Warnings {
			text("", "Note: "+w)
		}
	case !a.Done:
		sayChecks(w, a.Checks)
		show.Plan(a.Plan, text)
		text("", "Nothing was changed.")
	case a.Command == string(plan.Delete):
		text("", fmt.Sprintf("Cluster %s has no VM and no data disk any more.", a.Cluster))
	default:
		fmt.Fprintf(w, "Done. How the cluster is: %s\n", f.Again("quorate health"))
	}
}

// asking asks for the word yes.
func (f *fleetFlags) asking(cmd *cobra.Command) func(plan.Plan) error {
	return func(plan.Plan) error { return terminal.Confirm(cmd, "", "Carry this plan out?", f.yes) }
}

// atMost is for commands with one argument that may be left out.
func atMost(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= 1 {
			return nil
		}
		return fault.Usage("%s takes %s alone, and got %s (usage: %s)", cmd.CommandPath(), name,
			command.Counted(len(args)), cmd.UseLine())
	}
}

// first is an argument that may be left out.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// checkZones refuses what is no zone of the document's region.
func checkZones(zones []string) error {
	for _, z := range zones {
		if !zoneForm.MatchString(z) {
			return fault.Usage("--zone %q: a zone such as us-central1-a is needed", z)
		}
	}
	return nil
}

// addZone adds the flag of a zone, which is completed from the document.
func (f *fleetFlags) addZone(cmd *cobra.Command, zone *string, usage string) {
	cmd.Flags().StringVar(zone, "zone", "", usage)
	command.CompleteFlag(cmd, "zone", f.zones)
}

// zones are those of the document.
func (f *fleetFlags) zones(context.Context) ([]string, error) {
	c, err := f.Load()
	if err != nil || c.GCE == nil {
		return nil, err
	}
	return slices.Clone(c.GCE.Zones), nil
}
