// Package addonset has the commands about the add-ons' folder: what it would change in the cluster, what it needs to be
// allowed, the examples that quorate brings, and the manager's own process.
package addonset

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/addons"
	"github.com/quorate/quorate/addons/examples"
	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/replica"
)

// New is the group of these commands.
func New() *cobra.Command {
	return command.Group(&cobra.Command{Use: "addons", Short: "Compare the add-ons' folder with the cluster",
		Long: `The add-on manager keeps a folder of manifests applied to the cluster: that of addons.folder in the
Cluster document, or one with the document's addons.examples. Every master runs one, and 'quorate status' says how it
stands.`},
		newDiff(), newExamples(), newRole(), newRun())
}

// folderFlags say which folder is meant. What is not given is, on a master, that of its document.
type folderFlags struct{ folder, kubeconfig string }

func (f *folderFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.folder, "folder", "", "the add-ons' folder; on a master, as root, its document's where "+
		"this is not given")
}

// fill takes from this master's document what was not given.
func (f *folderFlags) fill(wantKubeconfig bool) error {
	if f.folder != "" && (f.kubeconfig != "" || !wantKubeconfig) {
		return nil
	}
	_, c, _, ok, err := agent.Remembered(master.RunDir, master.BakedFile)
	if err != nil {
		return fault.Config("%w", err)
	}
	if !ok {
		needs := "--folder is"
		if wantKubeconfig {
			needs = "--folder and --kubeconfig are"
		}
		return fault.Usage("%s needed; on a master they are known to root", needs)
	}
	if f.folder == "" {
		f.folder = controlplane.AddonsFolder(c, master.RunDir)
	}
	if f.folder == "" {
		return fault.Usage("this master's document has no add-ons; name a folder with --folder")
	}
	if f.kubeconfig == "" {
		f.kubeconfig = certs.Files{Dir: filepath.Join(c.Etcd.DataDir, "pki")}.Kubeconfig(certs.Addons)
	}
	return nil
}

func newExamples() *cobra.Command {
	var f cluster.Flags
	cmd := &cobra.Command{
		Use: "examples [NAME...]", Short: "Print the add-ons that quorate brings, for a folder of your own",
		Long: `Print the manifests of the add-ons that quorate brings, filled with the network of a Cluster document:
all, or those that are named. A document takes them as they are with addons.examples. Who wants them otherwise prints
them into a folder, changes them there, and names the folder with addons.folder.

Names: ` + strings.Join(replica.AddonExamples, ", "),
		RunE: func(cmd *cobra.Command, names []string) error {
			for _, name := range names {
				if !slices.Contains(replica.AddonExamples, name) {
					return fault.Usage("found %q; allowed: %s", name,
						strings.Join(replica.AddonExamples, ", "))
				}
			}
			c, err := f.Load()
			if err != nil {
				return err
			}
			c.Addons = replica.Addons{Examples: names}
			if len(names) == 0 {
				c.Addons.Examples = replica.AddonExamples
			}
			c.SetDefaults()
			if err := c.Validate(); err != nil { // the document may have no room for them
				return fault.Config("%w", err)
			}
			_, err = cmd.OutOrStdout().Write(examples.Set(c))
			return err
		},
	}
	f.Add(cmd)
	cmd.ValidArgs = replica.AddonExamples
	return cmd
}

// newRun is the process of the add-on manager. It is hidden: the agent starts it.
func newRun() *cobra.Command {
	var cfg addons.Config
	cmd := &cobra.Command{
		Use: "run", Short: "Keep the folder applied (the agent's child)", Hidden: true, Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.Needed(cmd, "folder", "kubeconfig", "socket"); err != nil {
				return err
			}
			cfg.Folder, cfg.Log = filepath.Clean(cfg.Folder), slog.New(slog.NewJSONHandler(os.Stderr, nil))
			return addons.Run(cmd.Context(), cfg)
		},
	}
	cmd.Flags().StringVar(&cfg.Folder, "folder", "", "the add-ons' folder")
	cmd.Flags().StringVar(&cfg.Kubeconfig, "kubeconfig", "", "the manager's own kubeconfig")
	cmd.Flags().StringVar(&cfg.Socket, "socket", "", "where the status is asked for")
	cmd.Flags().StringVar(&cfg.Replica, "replica", "", "this replica's name, for Events")
	return cmd
}
