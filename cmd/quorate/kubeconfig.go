package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

func newKubeconfig() *cobra.Command {
	var f clusterFlags
	var server, output string
	var lifetime time.Duration
	cmd := &cobra.Command{Use: "kubeconfig", Short: "Issue an administrator's kubeconfig (system:masters)",
		Args: noArguments,
		Long: `Issue an administrator's kubeconfig. It is made from the sealed bundle, so it needs the seal key and no running master. Whoever
holds the file is an administrator until it expires.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lifetime <= 0 {
				return &usageError{fmt.Errorf("--lifetime %s: a time above 0 is needed", lifetime)}
			}
			c, err := f.load()
			if err != nil {
				return err
			}
			if output != "" {
				if err := checkTarget(output); err != nil {
					return err
				}
			}
			if server == "" {
				// Validate has seen to it that there is an address.
				server = "https://" + net.JoinHostPort(c.EndpointAddresses()[0].String(), strconv.Itoa(c.Endpoint.Port))
			}
			b, err := readBundle(cmd, c)
			if err != nil {
				return err
			}
			text, err := certs.AdminKubeconfig(b, c, server, lifetime, time.Now())
			if err != nil {
				return err
			}
			if output == "" {
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			return durable.WriteFile(output, text, 0o600)
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&server, "server", "", "the URL by which you reach the cluster; the endpoint where it is "+
		"not given")
	cmd.Flags().StringVar(&output, "output", "", "the file to write, with mode 0600; standard output where it is "+
		"not given")
	cmd.Flags().DurationVar(&lifetime, "lifetime", certs.AdminLifetime, "how long it is good")
	return cmd
}

// readBundle reads the generation of the bundle that masters take: the last of those that continue one another. It says
// which one is passed over, and why.
func readBundle(cmd *cobra.Command, c *replica.Cluster) (*certs.Bundle, error) {
	ctx := cmd.Context()
	store, err := openRecord(c)
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
			return nil, recordError("read the bundle from %s: %w", store, err)
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
	return recordError("read the bundle from %s: it holds %s", store, bundleText(0, len(v.Replicas)))
}
