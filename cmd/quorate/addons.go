package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/controlplane"
)

func newAddons() *cobra.Command {
	return command.Group(&cobra.Command{Use: "addons", Short: "Compare the add-ons' folder with the cluster",
		Long: `The add-on manager keeps a folder of manifests applied to the cluster: that of addons.folder in the
Cluster document, or one with the document's addons.examples. Every master runs one, and 'quorate status' says how it
stands.`},
		newAddonsDiff(), newAddonsExamples(), newAddonsRole(), newAddonsRun())
}

// addonsFlags say which folder is meant. What is not given is, on a master, that of its document.
type addonsFlags struct{ folder, kubeconfig string }

func (f *addonsFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.folder, "folder", "", "the add-ons' folder; on a master, as root, its document's where "+
		"this is not given")
}

// fill takes from this master's document what was not given.
func (f *addonsFlags) fill(wantKubeconfig bool) error {
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
