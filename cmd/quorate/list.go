package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/cmd/quorate/tone"
	"github.com/quorate/quorate/fleet/show"
)

func newList() *cobra.Command {
	var f fleetFlags
	cmd := &cobra.Command{Use: "list", Short: "List the masters: VM, member, image, data disk",
		Args: command.NoArguments,
		Long: `List the masters: what the Compute API says of their VMs and disks, and what etcd's leader has reported of the
members. 'quorate health' says how the cluster is.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fl, err := f.open()
			if err != nil {
				return err
			}
			r, err := fl.Read(cmd.Context())
			if err != nil {
				return err
			}
			l := r.List()
			return terminal.PrintAs(cmd.OutOrStdout(), f.output, l, func(w io.Writer) {
				var rows []terminal.Row
				for n, cells := range show.Rows(l) {
					rows = append(rows, terminal.Row{Cells: cells,
						Tones: map[int]terminal.Tone{show.ReadyColumn: tone.OfListed(l.Replicas[n])}})
				}
				terminal.PrintTable(w, show.Head, rows)
				show.Notes(l, func(indent, text string) { terminal.PrintText(w, indent, text) })
			})
		}}
	f.addDocument(cmd)
	command.AddOutput(cmd, &f.output)
	return cmd
}
