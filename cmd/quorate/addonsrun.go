package main

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/addons"
	"github.com/quorate/quorate/cmd/quorate/command"
)

// newAddonsRun is the process of the add-on manager. It is hidden: the agent starts it.
func newAddonsRun() *cobra.Command {
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
