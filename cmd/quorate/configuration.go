package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/replica"
)

func newConfig() *cobra.Command {
	return command.Group(&cobra.Command{Use: "config", Short: "Validate, show or describe a Cluster document",
		Long: `A Cluster document is the configuration of one cluster, the same for all its masters. It is the image's
/etc/quorate/cluster.yaml, the instance attribute quorate-cluster, or both: where several files are given here, each is a
whole document and the later wins field by field, as the attribute wins over the image. The file - is standard input.`},
		newConfigValidate(), newConfigShow(), newConfigSchema())
}

func newConfigValidate() *cobra.Command {
	var output string
	cmd := &cobra.Command{Use: "validate FILE...", Short: "Name every fault of a document, one a line",
		Args: command.SomeFiles, RunE: func(cmd *cobra.Command, files []string) error {
			c, err := cluster.Load(files...)
			if err != nil {
				return err
			}
			return terminal.PrintAs(cmd.OutOrStdout(), output, map[string]any{"name": c.Name, "valid": true},
				terminal.TextOf("cluster %s: valid\n", c.Name))
		}}
	command.AddOutput(cmd, &output)
	return cmd
}

func newConfigShow() *cobra.Command {
	var output, run string
	cmd := &cobra.Command{Use: "show [FILE...]", Short: "Print a document with every default filled in, and no secret",
		Long: `Print a document with every default filled in, and no secret. On a master, as root, it is the document in
force where no file is given: the image's and the instance's, as they were at this boot.`,
		RunE: func(cmd *cobra.Command, files []string) error {
			c, err := shownCluster(cmd, files, run)
			if err != nil {
				return err
			}
			document, err := c.Show()
			if err != nil {
				return err
			}
			var v any
			if err := yaml.Unmarshal(document, &v); err != nil {
				return fmt.Errorf("show configuration: %w", err)
			}
			if output == "yaml" {
				output = "" // the document is YAML, in an order that people like
			}
			return terminal.PrintAs(cmd.OutOrStdout(), output, v, terminal.TextOf("%s", document))
		}}
	command.AddOutput(cmd, &output)
	master.AddRunDir(cmd, &run)
	return cmd
}

func newConfigSchema() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "Print the JSON Schema of the document, for editors",
		Args: command.NoArguments, RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), replica.Schema())
			return err
		}}
}

// shownCluster is the document of some files, or the one in force on this machine.
func shownCluster(cmd *cobra.Command, files []string, run string) (*replica.Cluster, error) {
	if len(files) > 0 {
		return cluster.Load(files...)
	}
	c, err := cluster.InForce(run)
	switch {
	case errors.Is(err, os.ErrNotExist) && master.IsClosed(run):
		return nil, fault.NotRoot("config show, on a master and without a file,")
	case errors.Is(err, os.ErrNotExist):
		return nil, fault.Usage("%s needs a file where there is no document in force: that is on a master, "+
			"for root (usage: %s)", cmd.CommandPath(), cmd.UseLine())
	}
	return c, err
}
