package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/etcdmember/restoredir"
)

// newMakeDirectory is the process in which the agent has the directory of a restore made. It is hidden: it only reads
// what it is given and writes a directory that nobody starts unless the record says so.
func newMakeDirectory() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "make-directory", Short: "Make the directory of a restore (the agent's child)", Hidden: true,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.Needed(cmd, "config"); err != nil {
				return err
			}
			work, err := restoredir.LoadJob(path)
			if err != nil {
				return fmt.Errorf("%w; only the agent starts this command, with a file that it has written", err)
			}
			return work.Make(cmd.Context(), slog.New(slog.NewJSONHandler(os.Stderr, nil)))
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "the work, as the agent wrote it")
	return cmd
}
