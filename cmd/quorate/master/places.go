// Package master has what a master's machine keeps for quorate itself: the places of its files, what it was made from,
// and why its agent ended the last time.
package master

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

// The places of a master's own files. They are the image's, so there is nothing to choose.
const (
	RunDir    = "/run/quorate"
	LogDir    = "/var/log/quorate"
	BakedFile = "/etc/quorate/cluster.yaml"
	HostsFile = "/etc/hosts"
	// DiskMount is where the image mounts the data disk whose device name its units give the agent in DiskVariable. A
	// flag would be lost where an operator's drop-in replaces the command.
	DiskMount, DiskVariable = "/var/lib/quorate", "QUORATE_DATA_DISK"
	DiskUnit                = "var-lib-quorate.mount"
	AgentUnit               = "quorate.service"
	// MetricsAddress is next to the scheduler's and the controller-manager's, on loopback as etcd's.
	MetricsAddress = "127.0.0.1:10270"
)

// AddRunDir adds the flag by which the agent and those who ask it find each other. There is nothing to choose on a
// master.
func AddRunDir(cmd *cobra.Command, run *string) {
	cmd.Flags().StringVar(run, "run-dir", RunDir, "the agent's folder, on a tmpfs: its socket, and what is true of "+
		"this boot alone")
	cobra.CheckErr(cmd.Flags().MarkHidden("run-dir"))
}

// IsClosed reports whether the agent's folder is there, for root alone.
func IsClosed(run string) bool {
	_, err := os.ReadDir(run)
	return errors.Is(err, fs.ErrPermission)
}
