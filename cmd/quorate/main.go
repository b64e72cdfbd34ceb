// quorate boots and repairs the masters of a Kubernetes cluster on Google Compute Engine. On a master, systemd runs
// `quorate agent`; everywhere else it is the operator's tool. A command a file; this one holds what all share: signals,
// the commands, and the one place where an error becomes lines for a person and a code for a script.
package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/addonset"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/version"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the exit.
func run(args []string, stdout, stderr io.Writer) int {
	return execute(newRoot(), args, stdout, stderr)
}

func newRoot() *cobra.Command {
	root := command.Group(&cobra.Command{
		Use:   "quorate",
		Short: "Boots, joins and repairs the masters of a Kubernetes cluster on Google Compute Engine",
		Long: `quorate boots, joins and repairs the masters of a Kubernetes cluster on Google Compute Engine.

On a master, systemd runs "quorate agent" at boot, and "quorate status" says how it is. A failed master is repaired by
recreating its VM. The other commands are run from anywhere that reaches the cluster's record.`,
		SilenceUsage: true, SilenceErrors: true,
		Version: version.Text(),
	}, newAgent(), newStatus(), newHealth(), newEvents(), newWhy(), newSupport(), newEtcd(), newConfig(), newRecord(),
		newOrders(), newGCE(), newPause(), newResume(), newOverride(), newBundle(), newKubeconfig(), newToken(),
		newSnapshot(), addonset.New(), newVersion(version.ImageFile), newRunEtcd(), newMakeDirectory(), newRestore(),
		newMan(), newCreate(), newAdd(), newRemove(), newReplace(), newRoll(), newList(), newDelete())
	root.SetVersionTemplate("quorate {{.Version}}\n")
	root.SetHelpCommand(command.Help())
	root.SetFlagErrorFunc(command.FlagFault)
	command.ReflowHelp(root)
	arrange(root)
	return root
}

// commandGroups are the headings of `quorate --help`. A command that is in none of them stands below the last one.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"observe", "How is it, what happened:", []string{"health", "status", "events", "why", "etcd", "support"}},
	{"set-up", "Set up a cluster:", []string{"config", "gce", "record"}},
	{"fleet", "Make and delete its masters' VMs:", []string{"create", "add", "remove", "replace", "roll", "list",
		"delete"}},
	{"operate", "Change a cluster that runs:", []string{"pause", "resume", "orders", "override"}},
	{"keys", "Access, keys, add-ons:", []string{"kubeconfig", "token", "bundle", "addons"}},
	{"restore", "Save and restore:", []string{"snapshot", "restore"}},
	{"program", "This program:", []string{"agent", "version", "completion"}},
}

// arrange puts the root's commands into their groups, and gives all commands one form of usage.
func arrange(root *cobra.Command) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			for _, c := range root.Commands() {
				if c.Name() == name {
					c.GroupID = g.id
				}
			}
		}
	}
	root.SetCompletionCommandGroupID("program")
	command.CompleteNoFiles(root)
	root.SetUsageFunc(command.ShowUsage)
}
