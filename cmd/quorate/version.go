package main

import (
	"errors"
	"fmt"
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
	// Image is what this machine was made from; absent on one that was not made from an image.
	Image *image `json:"image,omitempty"`
}

// release is the version that is worked on. A build that knows its commit or its tag says that in its place.
const release = "v0.1.0-dev"

func currentVersions() versions {
	v := versions{Quorate: release, Etcd: etcd.Version, Kubernetes: controlplane.KubernetesMinor, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Quorate = info.Main.Version
	}
	return v
}

func versionText() string {
	v := currentVersions()
	return fmt.Sprintf("%s (etcd %s, for Kubernetes %s)", v.Quorate, v.Etcd, v.Kubernetes)
}

// newVersion makes the command; file is where an image says what it is.
func newVersion(file string) *cobra.Command {
	var output string
	var ofImage bool
	cmd := &cobra.Command{Use: "version", Short: "Say which quorate, etcd and Kubernetes this is", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !ofImage && output == "" {
				fmt.Fprintln(cmd.OutOrStdout(), "quorate "+versionText())
				return nil
			}
			i, err := readImage(file)
			if err != nil && (ofImage || !errors.Is(err, errNoImage)) {
				return err
			}
			if ofImage {
				return printAs(cmd.OutOrStdout(), output, i, i.print)
			}
			v := currentVersions()
			if err == nil {
				v.Image = &i
			}
			return printAs(cmd.OutOrStdout(), output, v, nil)
		}}
	addOutput(cmd, &output)
	cmd.Flags().BoolVar(&ofImage, "image", false, "say what image this machine was made from")
	return cmd
}
