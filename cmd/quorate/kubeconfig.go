package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/kubeconfig"
	"github.com/quorate/quorate/cmd/quorate/recordtext"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

func newKubeconfig() *cobra.Command {
	var f cluster.Flags
	var server, output string
	var lifetime time.Duration
	var m mergeFlags
	cmd := &cobra.Command{Use: "kubeconfig", Short: "Issue an administrator's kubeconfig (system:masters)",
		Args: command.NoArguments,
		Long: `Issue an administrator's kubeconfig. It is made from the sealed bundle, so it needs the seal key and no
running master. Whoever holds the file is an administrator until it expires; the command says when that is. A file that
exists is kept; --force overwrites it.

With --merge the cluster is put next to those that you have: into the first file of $KUBECONFIG, or ~/.kube/config,
under the cluster's name. All else in that file stays, the current context too; --use changes it.`,
		Example: `  quorate kubeconfig --config cluster.yaml --lifetime 8h --output admin.kubeconfig
  quorate kubeconfig --config cluster.yaml --merge --use`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := m.check(output); err != nil {
				return err
			}
			if lifetime <= 0 {
				return fault.Usage("--lifetime %s: a time above 0 is needed", lifetime)
			}
			c, err := f.LoadWithKey()
			if err != nil {
				return err
			}
			if err := checkKubeconfig(output, m.force); err != nil {
				return err
			}
			if server == "" {
				server = endpointURL(c)
			}
			if err := certs.CheckAdmin(server, lifetime); err != nil {
				return fault.Usage("--%w", err)
			}
			text, until, err := issueAdmin(cmd, c, server, lifetime)
			if err != nil {
				return err
			}
			if m.merge {
				file, err := kubeconfig.Personal()
				if err != nil {
					return err
				}
				done, err := kubeconfig.Merge(file, c.Name, text, m.use, m.force)
				if err != nil {
					return err
				}
				done.Say(cmd.ErrOrStderr())
			} else if err := writeKubeconfig(cmd.OutOrStdout(), output, text, m.force); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "Good until %s.\n", terminal.When(until))
			return err
		}}
	f.Add(cmd)
	cmd.Flags().StringVar(&server, "server", "", "the URL by which you reach the cluster; the endpoint where it is "+
		"not given")
	cmd.Flags().StringVar(&output, "output", "", "the file to write, with mode 0600; standard output where it is "+
		"not given")
	cmd.Flags().DurationVar(&lifetime, "lifetime", certs.AdminLifetime, "how long it is good")
	cmd.Flags().BoolVar(&m.force, "force", false, "replace the file of --output; with --merge, another cluster of "+
		"this name")
	cmd.Flags().BoolVar(&m.merge, "merge", false, "put it into the file that kubectl reads, under the cluster's name")
	cmd.Flags().BoolVar(&m.use, "use", false, "with --merge: make it the current context")
	return cmd
}

// mergeFlags are those that put a cluster next to the others that a person has.
type mergeFlags struct{ merge, use, force bool }

func (f mergeFlags) check(output string) error {
	switch {
	case f.merge && output != "":
		return fault.Usage("--merge and --output exclude one another")
	case f.use && !f.merge:
		return fault.Usage("--use needs --merge: it is about the file that kubectl reads")
	}
	return nil
}

// checkKubeconfig finds out before any work whether writeKubeconfig can write.
func checkKubeconfig(file string, force bool) error {
	if file == "" {
		return nil
	}
	if err := fault.CheckTarget(file); err != nil {
		return err
	}
	if _, err := os.Lstat(file); err == nil && !force {
		return errKubeconfigExists(file)
	}
	return nil
}

// writeKubeconfig never replaces a file that nobody said to replace: it may be the only way into another cluster.
func writeKubeconfig(out io.Writer, file string, text []byte, force bool) error {
	switch {
	case file == "":
		_, err := out.Write(text)
		return err
	case force:
		return fault.AtFile(durable.WriteFile(file, text, 0o600))
	}
	err := durable.CreateFile(file, text, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errKubeconfigExists(file)
	}
	return fault.AtFile(err)
}

func errKubeconfigExists(file string) error {
	return fault.File("write the kubeconfig: %s exists and is not overwritten; name another file, or add --force", file)
}

// readBundle reads the generation of the bundle that masters take: the last of those that continue one another. It says
// which one is passed over, and why.
func readBundle(cmd *cobra.Command, c *replica.Cluster) (*certs.Bundle, error) {
	ctx := cmd.Context()
	store, err := cluster.OpenRecord(c)
	if err != nil {
		return nil, err
	}
	bundles, err := bucket.OpenBundles(store, c.Seal.Key)
	if err != nil {
		return nil, err
	}
	all, err := readGenerations(ctx, store, bundles)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, noBundle(ctx, store)
	}
	n, refused := certs.Continued(all)
	if refused != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "Bundle generation %d of the record is passed over, as the masters do: %v\n",
			all[n].Generation, refused)
	}
	return all[n-1], nil
}

// readGenerations opens all generations of the bundle, oldest first.
func readGenerations(ctx context.Context, store *bucket.Store, bundles *bucket.Bundles) ([]*certs.Bundle, error) {
	numbers, err := bundles.Generations(ctx)
	if err != nil {
		return nil, err
	}
	var all []*certs.Bundle
	for _, n := range numbers {
		plaintext, err := bundles.Read(ctx, n)
		if err != nil {
			return nil, err
		}
		b, err := certs.DecodeGeneration(n, plaintext)
		if err != nil {
			return nil, fault.Record("read the bundle from %s: %w", store, err)
		}
		all = append(all, b)
	}
	return all, nil
}

// noBundle says of a record without a bundle what `record show` says: whether it is to be made, or is lost.
func noBundle(ctx context.Context, store *bucket.Store) error {
	v, err := store.View(ctx)
	if err != nil {
		return err
	}
	return fault.Record("read the bundle from %s: it holds %s", store, recordtext.BundleText(0, len(v.Replicas)))
}
