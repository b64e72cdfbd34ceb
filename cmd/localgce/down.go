package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

// downLimit bounds the removal of a project whose process hangs.
const downLimit = 2 * time.Minute

// newDown removes the project from the machine.
func newDown() *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Remove every trace of the project from this machine; its files stay",
		Args: exactly(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return localgce.ErrNotRoot
			}
			c, err := client(cmd)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), downLimit)
			defer cancel()
			wasUp, err := c.Down(ctx)
			if err != nil {
				return fmt.Errorf("remove the project: %w", err)
			}
			if wasUp {
				fmt.Fprintf(cmd.OutOrStdout(), "The project is down. Its logs and disks stay in %s.\n", state(cmd))
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "No project was up; nothing of %s is left on this machine.\n",
					state(cmd))
			}
			return nil
		},
	}
}
