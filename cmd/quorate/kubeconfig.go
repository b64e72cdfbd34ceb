package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/record"
)

func newKubeconfig() *cobra.Command {
	var f clusterFlags
	var server, output string
	var lifetime time.Duration
	cmd := &cobra.Command{Use: "kubeconfig", Short: "Issue an administrator's kubeconfig (system:masters)", Args: cobra.NoArgs,
		Long: `Issue an administrator's kubeconfig. It is made from the sealed bundle, so it needs the seal key and no running master. Whoever
holds the file is an administrator until it expires.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			store, err := record.Open(cmd.Context(), c.Record.URL, c.Name)
			if err != nil {
				return fmt.Errorf("%w: %w", errRecord, err)
			}
			bundles, err := record.OpenBundles(store, c.Seal.Key)
			if err != nil {
				return fmt.Errorf("%w: %w", errRecord, err)
			}
			generation, plaintext, err := bundles.Newest(cmd.Context())
			if err != nil {
				return fmt.Errorf("%w: %w", errRecord, err)
			}
			if generation == 0 {
				return fmt.Errorf("%w: it holds no bundle yet; the first master makes it at its first boot", errRecord)
			}
			b, err := certs.DecodeBundle(plaintext)
			if err != nil {
				return err
			}
			if server == "" {
				addresses := c.EndpointAddresses()
				if len(addresses) == 0 {
					return &usageError{errors.New("the document names no endpoint address: give --server")}
				}
				server = "https://" + net.JoinHostPort(addresses[0].String(), strconv.Itoa(c.Endpoint.Port))
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
	cmd.Flags().StringVar(&server, "server", "", "the URL by which you reach the cluster; the endpoint where it is not given")
	cmd.Flags().StringVar(&output, "output", "", "the file to write, with mode 0600; standard output where it is not given")
	cmd.Flags().DurationVar(&lifetime, "lifetime", certs.AdminLifetime, "how long it is good")
	return cmd
}
