package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	etcd "go.etcd.io/etcd/api/v3/version"

	"github.com/quorate/quorate/controlplane"
)

// versions say what this program is, what it brings and what it is made for.
type versions struct {
	Quorate    string `json:"quorate"`
	Etcd       string `json:"etcd"`
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
}

func currentVersions() versions {
	v := versions{Quorate: "devel", Etcd: etcd.Version, Kubernetes: controlplane.KubernetesMinor, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Quorate = info.Main.Version
	}
	return v
}

func versionText() string {
	v := currentVersions()
	return fmt.Sprintf("%s (etcd %s, for Kubernetes %s)", v.Quorate, v.Etcd, v.Kubernetes)
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{Use: "version", Short: "Say which quorate, etcd and Kubernetes this is", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printAs(cmd.OutOrStdout(), output, currentVersions(),
				func(w io.Writer) { fmt.Fprintln(w, "quorate "+versionText()) })
		}}
	addOutput(cmd, &output)
	return cmd
}
