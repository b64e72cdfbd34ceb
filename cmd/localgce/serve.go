package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

// newServe is the project's process. It is hidden: `up` starts it, hands it the configuration on standard input and
// listens to a pipe until the project is up.
func newServe() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Be the project (started by up)", Hidden: true, Args: exactly(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			pipe := os.NewFile(messageFD, "messages")
			messages := json.NewEncoder(pipe)
			var conf localgce.Config
			if err := json.NewDecoder(cmd.InOrStdin()).Decode(&conf); err != nil {
				return fmt.Errorf("read the configuration from standard input (only `localgce up` starts this "+
					"command): %w", err)
			}
			conf.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
			// If `up` has gone, its pipe has: that is no reason to fail.
			conf.Progress = func(line string) { _ = messages.Encode(message{Progress: line}) }
			project, err := localgce.Start(cmd.Context(), conf)
			if err != nil {
				_ = messages.Encode(message{Error: err.Error(), Code: exitCode(err)})
				return err
			}
			return project.Run(cmd.Context(), func() {
				_ = messages.Encode(message{Up: true})
				pipe.Close()
			})
		},
	}
}
