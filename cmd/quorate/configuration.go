package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/replica"
)

func newConfig() *cobra.Command {
	return group(&cobra.Command{Use: "config", Short: "Validate, show or describe a Cluster document",
		Long: `A Cluster document is the configuration of one cluster, the same for all its masters. It is the image's
/etc/quorate/cluster.yaml, the instance attribute quorate-cluster, or both: where several files are given here, each is a
whole document and the later wins field by field, as the attribute wins over the image. The file - is standard input.`},
		newConfigValidate(), newConfigShow(), newConfigSchema())
}

func newConfigValidate() *cobra.Command {
	var output string
	cmd := &cobra.Command{Use: "validate FILE...", Short: "Name every fault of a document, one a line", Args: someFiles,
		RunE: func(cmd *cobra.Command, files []string) error {
			c, err := loadCluster(files...)
			if err != nil {
				return err
			}
			return printAs(cmd.OutOrStdout(), output, map[string]any{"name": c.Name, "valid": true},
				textOf("cluster %s: valid\n", c.Name))
		}}
	addOutput(cmd, &output)
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
			return printAs(cmd.OutOrStdout(), output, v, textOf("%s", document))
		}}
	addOutput(cmd, &output)
	addRunDir(cmd, &run)
	return cmd
}

// shownCluster is the document of some files, or the one in force on this machine.
func shownCluster(cmd *cobra.Command, files []string, run string) (*replica.Cluster, error) {
	if len(files) > 0 {
		return loadCluster(files...)
	}
	f := clusterFlags{config: namedConfig(), named: func() bool { return os.Getenv(configVariable) != "" }}
	c, err := f.document(run)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &usageError{fmt.Errorf("%s needs a file where there is no document in force: that is on a master, "+
			"for root (usage: %s)", cmd.CommandPath(), cmd.UseLine())}
	}
	return c, err
}

func newConfigSchema() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "Print the JSON Schema of the document, for editors", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), replica.Schema())
			return err
		}}
}

// loadCluster reads and validates documents as a master would, with the control plane's own rules.
func loadCluster(files ...string) (*replica.Cluster, error) {
	var sources []replica.Source
	for _, f := range files {
		s, err := readSource(f)
		if err != nil {
			return nil, &configError{fmt.Errorf("read configuration: %w", err)}
		}
		sources = append(sources, s)
	}
	c, err := controlplane.Load(sources...)
	if err != nil {
		return nil, &configError{err}
	}
	return c, nil
}

// standardInput is the name of standard input in place of a file's.
const standardInput = "-"

func readSource(file string) (replica.Source, error) {
	if file == standardInput {
		b, err := io.ReadAll(os.Stdin)
		return replica.Source{Name: "standard input", Data: b}, err
	}
	b, err := os.ReadFile(file)
	return replica.Source{Name: file, Data: b}, err
}

// configVariable names the Cluster document where --config does not.
const configVariable = "QUORATE_CONFIG"

// namedConfig is the document that the environment names, or the image's.
func namedConfig() string {
	if file := os.Getenv(configVariable); file != "" {
		return file
	}
	return bakedFile
}

// clusterFlags are what the operator's commands need to know of a cluster.
type clusterFlags struct {
	config string
	record string
	// named reports that the document was named; nil: it was not asked for.
	named func() bool
	// emptied reports that the flag was given with nothing in it; nil: it was not asked for.
	emptied func(flag string) bool
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.config, "config", namedConfig(),
		"the Cluster document, or -; "+configVariable+" names it too; on a master, as root, its own where neither does")
	f.named = func() bool { return cmd.Flags().Changed("config") || os.Getenv(configVariable) != "" }
	f.emptied = func(flag string) bool { return cmd.Flags().Changed(flag) && cmd.Flag(flag).Value.String() == "" }
	cmd.Flags().StringVar(&f.record, "record", "",
		"the record's URL as it is reached from here, where the document says another")
}

func (f *clusterFlags) load() (*replica.Cluster, error) {
	for flag, want := range map[string]string{"config": "the file of the Cluster document",
		"record": "the record's URL, such as gs://BUCKET"} {
		if f.emptied != nil && f.emptied(flag) {
			return nil, &usageError{fmt.Errorf("--%s is empty: want %s, or leave the flag out", flag, want)}
		}
	}
	c, err := f.document(runDir)
	switch {
	case errors.Is(err, os.ErrNotExist) && f.isNamed():
		return nil, fmt.Errorf("%w; name the document with --config", err)
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w; name the document with --config; on a master it is known to root", err)
	}
	if err == nil && f.record != "" {
		c.Record.URL = f.record
		if verr := c.Validate(); verr != nil {
			return nil, &usageError{fmt.Errorf("--record: %w", verr)}
		}
	}
	return c, err
}

// again is a command for the same cluster, reached in the same way: what a text proposes to run must not go to another
// one.
func (f *clusterFlags) again(command string) string {
	if f.isNamed() {
		command += " --config " + quoted(f.config)
	}
	if f.record != "" {
		command += " --record " + quoted(f.record)
	}
	return command
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-", r)
	}) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

func (f *clusterFlags) isNamed() bool { return f.named != nil && f.named() }

// document is the one that was named; where none was, on a master, what its agent runs with: the image's file and the
// instance's attribute, as they were at this boot. So what a status proposes to run can be run where it was read.
func (f *clusterFlags) document(run string) (*replica.Cluster, error) {
	if !f.isNamed() {
		if _, c, _, ok, err := agent.Remembered(run, bakedFile); ok {
			if err != nil {
				return nil, &configError{err}
			}
			return c, nil
		}
	}
	return loadCluster(f.config)
}
