package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/certs"
)

func newBundle() *cobra.Command {
	return group(&cobra.Command{Use: "bundle", Short: "Keep the cluster's CA keys in escrow, and bring them back",
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
		when(b.Created))
	var rows []row
	for _, f := range list {
		rows = append(rows, row{cells: []string{string(f.Authority), f.NotAfter.UTC().Format("2006-01-02"), f.Pin}})
	}
	printTable(w, []string{"CA", "UNTIL", "SHA-256 OF ITS KEY"}, rows)
	return nil
}

// passphraseFrom reads the passphrase from a file, without the line's end, or asks for it on the terminal; twice for a
// new one.
func passphraseFrom(cmd *cobra.Command, file string, isNew bool) (string, error) {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fileFault("read the passphrase: %w", err)
		}
		line := strings.TrimRight(string(text), "\r\n")
		if line == "" || strings.ContainsAny(line, "\r\n") {
			return "", fileFault("read the passphrase: %s: one line is needed, and not an empty one", file)
		}
		return line, nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) {
		return "", &usageError{errors.New("there is no terminal to ask for the passphrase on: --passphrase-file FILE")}
	}
	first, err := askHidden(cmd, in, "Passphrase: ")
	if err != nil || !isNew {
		return first, err
	}
	again, err := askHidden(cmd, in, "The same again: ")
	if err == nil && again != first {
		err = errors.New("read the passphrase: the two are not the same")
	}
	return first, err
}

// askHidden reads a line of the terminal without showing it.
func askHidden(cmd *cobra.Command, in *os.File, prompt string) (string, error) {
	show, err := hideInput(in)
	if err != nil {
		return "", fmt.Errorf("read the passphrase: hide what is typed: %w", err)
	}
	defer show()
	fmt.Fprint(cmd.ErrOrStderr(), prompt)
	text, err := readLine(cmd.Context(), in)
	fmt.Fprintln(cmd.ErrOrStderr())
	if err != nil {
		return "", errNoPassphrase
	}
	return text, nil
}

// errNoPassphrase says that a person was asked for one and ended the command.
var errNoPassphrase = errors.New("read the passphrase: none was given; nothing was changed")
