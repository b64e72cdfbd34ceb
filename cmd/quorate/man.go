package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/version"
	"github.com/quorate/quorate/internal/durable"
)

// newMan writes manual pages. It is hidden: `make man` calls it.
func newMan() *cobra.Command {
	return &cobra.Command{Use: "man DIR", Short: "Write the manual pages of all commands into a folder", Hidden: true,
		Args: command.Exactly("DIR"),
		Long: "Write the manual pages of all commands into a folder: quorate.1, quorate-health.1 and so on.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fault.AtFile(err)
			}
			return writePages(cmd.Root(), args[0])
		}}
}

// writePages writes the page of a command and of those below it.
func writePages(cmd *cobra.Command, dir string) error {
	file := filepath.Join(dir, command.PageName(cmd)+".1")
	if err := durable.WriteFile(file, []byte(command.ManualPage(cmd, version.Current().Quorate)), 0o644); err != nil {
		return fault.AtFile(err)
	}
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if err := writePages(c, dir); err != nil {
			return err
		}
	}
	return nil
}
