package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/member"
)

// newRunEtcd is the child in which the agent runs its etcd member. It is hidden: nobody but the agent starts it,
// because nobody but the agent knows that it may start.
func newRunEtcd() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "run-etcd", Short: "Run this replica's etcd member (the agent's child)", Hidden: true,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.Needed(cmd, "config"); err != nil {
				return err
			}
			cfg, err := member.LoadConfig(path)
			if err != nil {
				return fmt.Errorf("%w; only the agent starts this command, with a file that it has written", err)
			}
			// Stderr is a pipe that the agent always reads. If the agent is dead, the next line ends this process by
			// SIGPIPE. That is left so: a member without its agent must end, and what it acknowledged is on the disk,
			// as for the SIGKILL that would come instead.
			log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
			collectEarly()
			net.DefaultResolver = hosts.Resolver(hosts.Path) // before anything in this process asks for a name
			err = member.Run(cmd.Context(), cfg, log)
			if errors.Is(err, member.ErrStalled) {
				log.Warn("starting again on the same directory", "reason", err.Error())
				return execSelf()
			}
			return err
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "the member's configuration, as the agent wrote it")
	return cmd
}

// execSelf starts this program again under the same process id, so that the agent sees one child.
func execSelf() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start again: %w", err)
	}
	return fmt.Errorf("start again: %w", syscall.Exec(self, os.Args, os.Environ()))
}
