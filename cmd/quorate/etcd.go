package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
)

func newEtcd() *cobra.Command {
	return command.Group(&cobra.Command{Use: "etcd",
		Short: "Explain this master's etcd membership, or start it where the " +
			"record cannot be read",
		Long: `On a master, as root: explain what the membership's table says of it, or start its etcd where the
record cannot be read. Only a person on this very VM can order that.`}, newEtcdExplain(), newEtcdStartAnyway())
}
