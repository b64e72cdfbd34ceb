package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/terminal"
)

func newBundle() *cobra.Command {
	return command.Group(&cobra.Command{Use: "bundle",
		Short: "Keep the cluster's CA keys in escrow, and bring them back",
		Long: `The bundle holds what all masters share: the keys of the four CAs, the service-account keys, the keys that encrypt secrets in etcd. It
is in the record, sealed. Without it no master can be added and no certificate renewed, so a copy belongs in escrow: outside of the
record's bucket, and openable without the seal key.`},
		newBundleExport(), newBundleImport())
}

// showFingerprints prints the CAs of a bundle by what may be shown of them.
func showFingerprints(w io.Writer, b *certs.Bundle) error {
	list, err := b.Fingerprints()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "bundle generation %d of the cluster with uid %s, made %s\n", b.Generation, b.ClusterUID,
		terminal.When(b.Created))
	var rows []terminal.Row
	for _, f := range list {
		rows = append(rows, terminal.Row{Cells: []string{string(f.Authority), f.NotAfter.UTC().Format("2006-01-02"),
			f.Pin}})
	}
	terminal.PrintTable(w, []string{"CA", "UNTIL", "SHA-256 OF ITS KEY"}, rows)
	return nil
}
