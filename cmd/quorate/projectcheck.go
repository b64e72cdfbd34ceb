package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/recordtext"
	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/setup"
)

// checkText ends the help of the commands that check the project first.
const checkText = `

Before anything is made it runs the checks of 'quorate gce check', and asks Google which permissions you lack. What has
to be mended is named with the commands that mend it, and nothing is made. The checks do not see everything, such as
rules of a network that another project shares: --skip-checks leaves them out.`

func (f *fleetFlags) addSkipChecks(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.skipChecks, "skip-checks", false,
		"do not check the project first, as where a check is wrong about it")
}

// checkProject judges the project before masters are made in it. It returns what is not well, and a refusal where that
// has to be mended first.
func (f *fleetFlags) checkProject(ctx context.Context, c *replica.Cluster, w plan.Wish) ([]record.Finding, error) {
	if f.skipChecks || w.Kind != plan.Create && w.Kind != plan.Add {
		return nil, nil
	}
	store, err := cluster.OpenRecord(c)
	if err != nil {
		return nil, err
	}
	found, err := judged(ctx, c, store, f.factsFor(c, w))
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(f record.Finding) bool { return f.Level == record.OK })
	if recordtext.CountFailed(found) == 0 {
		return found, nil
	}
	var red []string
	for _, f := range found {
		if f.Level == record.Fail {
			red = append(red, f.Subject)
		}
	}
	return found, &plan.Refusal{Name: plan.ProjectNotReady,
		Why: fmt.Sprintf("The project is not ready, so nothing was made: %s.", strings.Join(slices.Compact(red), ", ")),
		Next: "Mend what is marked fail, and run the command again. If a check is wrong about your project, add " +
			"--skip-checks."}
}

// factsFor is what a wish needs of the project. A zone of another region is left to the plan, which refuses it.
func (f *fleetFlags) factsFor(c *replica.Cluster, w plan.Wish) setup.Facts {
	zones := w.Zones
	if w.Zone != "" {
		zones = []string{w.Zone}
	}
	zones = slices.DeleteFunc(slices.Clone(zones), func(z string) bool { return replica.RegionOf(z) != c.GCE.Region })
	facts := setup.Wanted(c, dataDevice(c), zones)
	creates := w.Kind == plan.Create
	facts.Needs = setup.ToMakeMasters(c, creates)
	if creates && f.number == "" {
		facts.Needs.Project = append(facts.Needs.Project, "resourcemanager.projects.get")
	}
	facts.Creates = creates
	facts.MakesRules, facts.MakesAddress = facts.MakesRules && creates, facts.MakesAddress && creates
	return facts
}

// sayChecks shows what of the project is not well.
func sayChecks(w io.Writer, found []record.Finding) {
	if len(found) > 0 {
		recordtext.ShowFindings(w, found)
		fmt.Fprintln(w)
	}
}
