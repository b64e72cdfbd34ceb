package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/cmd/quorate/version"
)

// newVersion makes the command; file is where an image says what it is.
func newVersion(file string) *cobra.Command {
	var output string
	var ofImage bool
	cmd := &cobra.Command{Use: "version", Short: "Say which quorate, etcd and Kubernetes this is",
		Args: command.NoArguments, RunE: func(cmd *cobra.Command, _ []string) error {
			if !ofImage && output == "" {
				fmt.Fprintln(cmd.OutOrStdout(), "quorate "+version.Text())
				return nil
			}
			i, err := version.ReadImage(file)
			if err != nil && (ofImage || !errors.Is(err, version.ErrNoImage)) {
				return err
			}
			if ofImage {
				return terminal.PrintAs(cmd.OutOrStdout(), output, i, i.Print)
			}
			v := version.Current()
			if err == nil {
				v.Image = &i
			}
			return terminal.PrintAs(cmd.OutOrStdout(), output, v, nil)
		}}
	command.AddOutput(cmd, &output)
	cmd.Flags().BoolVar(&ofImage, "image", false, "say what image this machine was made from")
	return cmd
}
