package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/replica"
)

// configError is a Cluster document that cannot be used.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

func newConfig() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Validate, show or describe a Cluster document", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(
		&cobra.Command{Use: "validate FILE...", Short: "Name every fault of a document; several are merged, later wins", Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, files []string) error {
				c, err := loadCluster(files...)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "cluster %s: valid\n", c.Name)
				return nil
			}},
		&cobra.Command{Use: "show FILE...", Short: "Print a document with every default filled in, and no secret", Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, files []string) error {
				c, err := loadCluster(files...)
				if err != nil {
					return err
				}
				out, err := c.Show()
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(out)
				return err
			}},
		&cobra.Command{Use: "schema", Short: "Print the JSON Schema of the document", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				out, err := replica.Schema()
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(out)
				return err
			}},
	)
	return cmd
}

// loadCluster reads and validates documents as a master would, with the control plane's own rules.
func loadCluster(files ...string) (*replica.Cluster, error) {
	var sources []replica.Source
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, &configError{fmt.Errorf("read configuration: %w", err)}
		}
		sources = append(sources, replica.Source{Name: f, Data: b})
	}
	c, err := replica.Load(sources...)
	if err != nil {
		return nil, &configError{err}
	}
	if err := controlplane.Validate(c); err != nil {
		return nil, &configError{err}
	}
	return c, nil
}

// clusterFlags are what the operator's commands need to know of a cluster.
type clusterFlags struct {
	config string
	record string
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.config, "config", bakedFile, "the Cluster document")
	cmd.Flags().StringVar(&f.record, "record", "", "the record's URL as it is reached from here, where the document says another")
}

func (f *clusterFlags) load() (*replica.Cluster, error) {
	c, err := loadCluster(f.config)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w; name the document with --config", err)
	}
	if err == nil && f.record != "" {
		c.Record.URL = f.record
		if verr := c.Validate(); verr != nil {
			return nil, &configError{fmt.Errorf("--record: %w", verr)}
		}
	}
	return c, err
}
