// Package cluster finds the cluster that a command is about. Its document is named by a flag or by the environment, or
// is what this master runs with. Its record and reports are opened as an operator reaches them.
package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

// Load reads and validates documents as a master would, with the control plane's own rules.
func Load(files ...string) (*replica.Cluster, error) {
	var sources []replica.Source
	for _, f := range files {
		s, err := ReadSource(f)
		if err != nil {
			return nil, fault.Config("read configuration: %w", err)
		}
		sources = append(sources, s)
	}
	c, err := controlplane.Load(sources...)
	if err != nil {
		return nil, fault.Config("%w", err)
	}
	return c, nil
}

// StandardInput is the name of standard input in place of a file's.
const StandardInput = "-"

// ReadSource reads a document, or standard input for "-".
func ReadSource(file string) (replica.Source, error) {
	if file == StandardInput {
		b, err := io.ReadAll(os.Stdin)
		return replica.Source{Name: "standard input", Data: b}, err
	}
	b, err := os.ReadFile(file)
	return replica.Source{Name: file, Data: b}, err
}

// ConfigVariable names the Cluster document where --config does not.
const ConfigVariable = "QUORATE_CONFIG"

// namedConfig is the document that the environment names, or the image's.
func namedConfig() string {
	if file := os.Getenv(ConfigVariable); file != "" {
		return file
	}
	return master.BakedFile
}

// Flags are what the operator's commands need to know of a cluster.
type Flags struct {
	Config string
	Record string
	// named reports that the document was named; nil: it was not asked for.
	named func() bool
	// Emptied reports that the flag was given with nothing in it; nil: it was not asked for.
	Emptied func(flag string) bool
	// ofAgent: the document came from this machine's agent.
	ofAgent bool
}

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Config, "config", namedConfig(),
		"the Cluster document, or -; "+ConfigVariable+" names it too; on a master, as root, its own where neither does")
	f.named = func() bool { return cmd.Flags().Changed("config") || os.Getenv(ConfigVariable) != "" }
	f.Emptied = func(flag string) bool { return cmd.Flags().Changed(flag) && cmd.Flag(flag).Value.String() == "" }
	cmd.Flags().StringVar(&f.Record, "record", "",
		"the record's URL as it is reached from here, where the document says another")
}

// AddFile adds another name of the flag --config.
func (f *Flags) AddFile(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.Config, "file", "f", f.Config, "the same as --config")
	named := f.named
	f.named = func() bool { return named() || cmd.Flags().Changed("file") }
}

// Load reads the document that the flags name, with the record's URL that they give. Whether the document's key may
// stand next to that record is not asked: most commands only read the record, and need no key.
func (f *Flags) Load() (*replica.Cluster, error) {
	for flag, want := range map[string]string{"config": "the file of the Cluster document",
		"record": "the record's URL, such as gs://BUCKET"} {
		if f.Emptied != nil && f.Emptied(flag) {
			return nil, fault.Usage("--%s is empty: want %s, or leave the flag out", flag, want)
		}
	}
	c, err := f.document(master.RunDir)
	switch {
	case errors.Is(err, os.ErrNotExist) && f.IsNamed():
		return nil, fmt.Errorf("%w; name the document with --config", err)
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w; name the document with --config or in %s; on a master it is known to root", err,
			ConfigVariable)
	}
	if err == nil && f.Record != "" {
		c.Record.URL = f.Record
		if verr := c.Record.Validate(); verr != nil {
			return nil, fault.Usage("--record: %w", verr)
		}
	}
	return c, err
}

// LoadWithKey is Load for a command that opens or seals the bundle, or gives the document to masters: a key that the
// document itself holds is refused for a bucket of Google's, which --record may name.
func (f *Flags) LoadWithKey() (*replica.Cluster, error) {
	c, err := f.Load()
	if err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, fault.Usage("--record: %w", err)
	}
	return c, nil
}

// Again is a command for the same cluster, reached in the same way: what a text proposes to run must not go to another
// one.
func (f *Flags) Again(command string) string {
	if f.IsNamed() {
		command += " --config " + Quoted(f.Config)
	}
	if f.Record != "" {
		command += " --record " + Quoted(f.Record)
	}
	return command
}

// Quoted is a word as a shell takes it.
func Quoted(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-", r)
	}) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// IsNamed reports whether the document was named, by the flag or by the environment.
func (f *Flags) IsNamed() bool { return f.named != nil && f.named() }

// document is the one that was named; where none was, on a master, what its agent runs with: the image's file and the
// instance's attribute, as they were at this boot. So what a status proposes to run can be run where it was read.
func (f *Flags) document(run string) (*replica.Cluster, error) {
	f.ofAgent = false
	if !f.IsNamed() {
		if _, c, _, ok, err := agent.Remembered(run, master.BakedFile); ok {
			if err != nil {
				return nil, fault.Config("%w", err)
			}
			f.ofAgent = true
			return c, nil
		}
	}
	return Load(f.Config)
}

// OfAgent reports whether the document that was loaded is what this machine's agent runs with: this is a master.
func (f *Flags) OfAgent() bool { return f.ofAgent }

// InForce is the document that the environment names or, where it names none, the one that this machine's agent
// runs with. The error is os.ErrNotExist where there is neither.
func InForce(run string) (*replica.Cluster, error) {
	f := Flags{Config: namedConfig(), named: func() bool { return os.Getenv(ConfigVariable) != "" }}
	return f.document(run)
}

// Open opens the record of the cluster that the flags name.
func (f *Flags) Open() (*bucket.Store, error) {
	c, err := f.Load()
	if err != nil {
		return nil, err
	}
	return OpenRecord(c)
}

// OpenRecord opens the record for an operator's command: as whoever Google's default credentials stand for.
func OpenRecord(c *replica.Cluster) (*bucket.Store, error) {
	return bucket.Open(c.Record.URL, c.Name, gce.UserClient())
}

// OpenReports opens the reports, as OpenRecord does the record.
func OpenReports(c *replica.Cluster) (*bucket.Reports, error) {
	return bucket.OpenReports(c.Record.URL, c.Name, gce.UserClient())
}
