package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/durable"
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
	terminal.PrintTableBelow(w, []string{"CA", "UNTIL", "SHA-256 OF ITS KEY"}, rows)
	return nil
}

func newBundleExport() *cobra.Command {
	var f cluster.Flags
	var passphraseFile string
	cmd := &cobra.Command{Use: "export FILE", Short: "Write the newest bundle, encrypted with a passphrase, for escrow",
		Args: command.Exactly("FILE"),
		Long: `Write the newest bundle, encrypted with a passphrase, for escrow. It is opened with the seal key and written to a new file, mode 0600, in
the age format with armor: text that can be printed, and that "age --decrypt" opens too. Whoever has the file and the passphrase has
the cluster: keep them apart.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" {
				return fault.Usage("bundle export writes a new file, and - is none: name one; the " +
					"cluster's keys do not go to standard output")
			}
			c, err := f.LoadWithKey()
			if err != nil {
				return err
			}
			if _, err := os.Lstat(args[0]); err == nil {
				return errEscrowExists(args[0])
			}
			if err := fault.CheckTarget(args[0]); err != nil {
				return err
			}
			b, err := readBundle(cmd, c)
			if err != nil {
				return err
			}
			passphrase, err := terminal.Passphrase(cmd, passphraseFile, true)
			if err != nil {
				return err
			}
			text, err := b.Escrow(passphrase)
			if err != nil {
				return err
			}
			if err := durable.CreateFile(args[0], text, 0o600); err != nil {
				if errors.Is(err, fs.ErrExist) {
					return errEscrowExists(args[0])
				}
				return fault.AtFile(err)
			}
			if err := showFingerprints(cmd.OutOrStdout(), b); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nWritten to %s.\n", args[0])
			return err
		}}
	f.Add(cmd)
	cmd.Flags().StringVar(&passphraseFile, "passphrase-file", "",
		"a file with the passphrase in one line; it is asked for where this is not given")
	return cmd
}

func errEscrowExists(path string) error {
	return fault.File("write the escrow: %s exists and is not overwritten", path)
}
