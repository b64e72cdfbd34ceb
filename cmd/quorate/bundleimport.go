package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/recordtext"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

func newBundleImport() *cobra.Command {
	var f cluster.Flags
	var passphraseFile string
	var yes bool
	cmd := &cobra.Command{Use: "import FILE", Short: "Bring the bundle back from escrow into the record",
		Args: command.Exactly("FILE"),
		Long: `Bring the bundle back from escrow into the record, sealed with the seal key. It must be of this cluster
(by the uid of its inception, which "quorate record rebuild" brings back too), whole, and good enough to
issue every certificate of a master. A generation that is there is never replaced.

A newer generation must know the CAs and keys that the present one works with, and work with those that
the present one knows: masters take it up one after the other, each when its VM boots. A CA that begins to
issue must have 90 days left, the life of what it issues. Encrypt a generation that was made by hand first,
with "age --passphrase --armor". The command shows the CAs and asks.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.LoadWithKey()
			if err != nil {
				return err
			}
			b, err := readEscrow(cmd, args[0], passphraseFile)
			if err != nil {
				return err
			}
			if err := b.Prove(c, time.Now()); err != nil {
				return fault.File("import %s: %w\nnothing was changed", args[0], err)
			}
			return importBundle(cmd, c, b, yes)
		}}
	f.Add(cmd)
	terminal.AddYes(cmd, &yes)
	cmd.Flags().StringVar(&passphraseFile, "passphrase-file", "",
		"a file with the passphrase in one line; it is asked for where this is not given")
	return cmd
}

// readEscrow reads an exported bundle.
func readEscrow(cmd *cobra.Command, path, passphraseFile string) (*certs.Bundle, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.File("read the escrow: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, certs.MaxEscrow+1))
	if err != nil {
		return nil, fault.File("read the escrow: %w", err)
	}
	switch {
	case len(data) > certs.MaxEscrow:
		return nil, fault.File("read the escrow: %s has more than %d bytes: that is no bundle", path, certs.MaxEscrow)
	case !certs.Encrypted(data):
		return nil, fault.File("read the escrow: %s is not encrypted: it is not the file that export wrote", path)
	}
	passphrase, err := terminal.Passphrase(cmd, passphraseFile, false)
	if err != nil {
		return nil, err
	}
	b, err := certs.OpenEscrow(data, passphrase)
	if err != nil {
		return nil, fault.File("read %s: %w\nnothing was changed", path, err)
	}
	return b, nil
}

// importBundle compares the bundle with the record, asks, and creates it.
func importBundle(cmd *cobra.Command, c *replica.Cluster, b *certs.Bundle, yes bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	store, err := cluster.OpenRecord(c)
	if err != nil {
		return err
	}
	bundles, err := bucket.OpenBundles(store, c.Seal.Key)
	if err != nil {
		return err
	}
	former, err := mayImport(ctx, store, bundles, b)
	if err != nil {
		return fmt.Errorf("%w\nnothing was changed", err)
	}
	if err := showFingerprints(out, b); err != nil {
		return err
	}
	if former != nil && former.Generation == b.Generation {
		fmt.Fprintf(out, "\n%s holds this very bundle already. Nothing was changed.\n", store)
		return nil
	}
	if err := showLeftOut(out, b, former); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := terminal.Confirm(cmd, "", fmt.Sprintf("Create bundle generation %d in %s?", b.Generation, store),
		yes); err != nil {
		return err
	}
	plaintext, err := b.Encode()
	if err != nil {
		return err
	}
	got, _, err := bundles.Create(ctx, b.Generation, plaintext)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, plaintext) {
		return fault.Record("import into %s: somebody created another bundle of generation %d meanwhile; it stays",
			store, b.Generation)
	}
	fmt.Fprintf(out, "%s holds bundle generation %d. Masters that wait for it go on by themselves.\n", store,
		b.Generation)
	return nil
}

// showLeftOut says what ends with a generation: nodes and pods may still use what was issued before.
func showLeftOut(w io.Writer, b, former *certs.Bundle) error {
	if former == nil {
		return nil
	}
	gone, err := b.LeftOut(former)
	if err != nil || len(gone) == 0 {
		return err
	}
	fmt.Fprintf(w, "\nIt leaves out, so that masters refuse what these issued or signed:\n")
	for _, g := range gone {
		fmt.Fprintln(w, g)
	}
	return nil
}

// mayImport says why the record may not take the bundle. former is the newest one that it has; nil: none.
func mayImport(ctx context.Context, store *bucket.Store, bundles *bucket.Bundles,
	b *certs.Bundle) (former *certs.Bundle, err error) {
	v, err := store.View(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case v.LostInception():
		return nil, fault.Record("import into %s: %s, and the bundle comes after it", store, recordtext.InceptionLost)
	case v.Inception == nil:
		return nil, fault.Record("import into %s: no cluster has begun here, or all of its record is lost: check the "+
			"record's URL and the cluster's name; a record that is lost is brought back first (quorate record rebuild)",
			store)
	case v.Inception.UID != b.ClusterUID:
		return nil, fault.Record("import into %s: the bundle is of the cluster with uid %s, the record of %s", store,
			b.ClusterUID, v.Inception.UID)
	case b.Generation < v.Bundle:
		return nil, fault.Record("import into %s: the record has generation %d, and this is %d: an older one would "+
			"bring dropped CAs and keys back", store, v.Bundle, b.Generation)
	}
	all, err := readGenerations(ctx, store, bundles)
	if err != nil {
		return nil, err
	}
	if _, refused := certs.Continued(all); refused != nil {
		return nil, fault.Record("import into %s: no master takes what comes after a generation that was not "+
			"imported: %w", store, refused)
	}
	if len(all) > 0 {
		former = all[len(all)-1]
	}
	switch {
	case former == nil && len(v.Replicas) > 0:
		// the masters have it: it comes back as it was, though its CAs may be about to end
	case former == nil:
		err = b.CheckNewCAs(nil, time.Now())
	case former.Generation == b.Generation:
		err = sameBundle(b, former)
	default:
		if err = b.Continues(former); err == nil {
			err = b.CheckNewCAs(former, time.Now())
		}
	}
	if err != nil {
		return nil, fault.Record("import into %s: %w", store, err)
	}
	return former, nil
}

// sameBundle distinguishes the bundle that the record holds from another one of its generation.
func sameBundle(b, held *certs.Bundle) error {
	mine, err := b.Encode()
	if err != nil {
		return err
	}
	theirs, err := held.Encode()
	if err == nil && !bytes.Equal(mine, theirs) {
		err = errOtherBundle
	}
	return err
}

// errOtherBundle: two bundles of one generation were made, and a cluster can have one.
var errOtherBundle = errors.New("the record holds another bundle of this generation; it stays")
