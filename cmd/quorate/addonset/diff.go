package addonset

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/addons"
	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/terminal"
)

func newDiff() *cobra.Command {
	var f folderFlags
	var output string
	cmd := &cobra.Command{
		Use: "diff", Short: "Show what the add-on manager would change in the cluster", Args: command.NoArguments,
		Long: `Show what the add-on manager would change in the cluster, and which objects it would delete. Nothing
is written: what would be applied is applied as a dry run. Values of Secrets are not shown. On a master, as root, the
folder and the identity are those of its own manager.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.fill(true); err != nil {
				return err
			}
			if _, err := os.Stat(f.kubeconfig); err != nil {
				return fault.File("read the kubeconfig: %w", err)
			}
			d, err := addons.Diff(cmd.Context(), f.kubeconfig, f.folder)
			if err != nil {
				return err
			}
			return terminal.PrintAs(cmd.OutOrStdout(), output, d, func(w io.Writer) { showDifferences(w, d) })
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "who asks the cluster; on a master, as root, its manager "+
		"where this is not given")
	command.AddOutput(cmd, &output)
	return cmd
}

// showDifferences begins with what keeps the manager from writing at all.
func showDifferences(w io.Writer, d addons.Differences) {
	fmt.Fprintf(w, "%s is version %s; the cluster has %s\n", d.Folder, terminal.OrNone(string(d.Version)),
		terminal.OrNone(string(d.Inventory)))
	for _, fault := range d.Faults {
		terminal.PrintText(w, "", "FAULT: "+fault)
	}
	switch d.Standing {
	case plan.Older:
		fmt.Fprintln(w, "The set is older than what was applied: the manager of this folder writes nothing.")
	case plan.Differs:
		fmt.Fprintln(w, "Another set of this version was applied first: the manager of this folder writes nothing.")
	}
	for _, o := range d.Objects {
		line := fmt.Sprintf("\n%s %s", o.Action, o.Object)
		if o.Source != "" {
			line += " (" + o.Source + ")"
		}
		fmt.Fprintln(w, line)
		if len(o.Changes) == 0 {
			terminal.PrintText(w, "  ", o.Reason)
		}
		for _, c := range o.Changes {
			fmt.Fprintf(w, "  %s: %s -> %s\n", c.Path, value(c.Before), value(c.After))
		}
	}
	if d.Kept != "" {
		fmt.Fprintln(w)
		terminal.PrintText(w, "", "What former sets have made is kept: "+d.Kept)
	}
	fmt.Fprintf(w, "\nto do: %d; the same: %d\n", len(d.Objects), d.Same)
}

// value is a field's value in one line.
func value(v any) string {
	if v == nil {
		return "none"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(string(text))
}
