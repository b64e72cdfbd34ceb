package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

func newSnapshot() *cobra.Command {
	return command.Group(&cobra.Command{Use: "snapshot", Short: "Save, list or verify snapshots of etcd",
		Long: `A snapshot is the whole database of etcd at one moment, verified, compressed and kept in the record's bucket under snapshots/. The
masters save one by themselves (etcd.snapshots in the Cluster document); these commands save one now, list them and verify them.`},
		newSnapshotSave(), newSnapshotList(), newSnapshotVerify())
}

// shelfFlags find a record's snapshots: by the Cluster document or, where that is lost as well, by the record's URL and
// the cluster's name.
type shelfFlags struct {
	cluster.Flags
	cluster string
}

func (f *shelfFlags) add(cmd *cobra.Command) {
	f.Flags.Add(cmd)
	cmd.Flags().StringVar(&f.cluster, "cluster", "",
		"the cluster's name; with --record it takes the place of the document")
}

func (f *shelfFlags) open() (*bucket.Store, error) {
	switch {
	case f.Emptied("cluster"):
		return nil, fault.Usage("--cluster is empty: want the cluster's name, or leave the flag out")
	case f.cluster == "":
		return f.Flags.Open()
	case f.Record == "":
		return nil, fault.Usage("--cluster needs --record: the two take the place of the document")
	}
	if err := replica.CheckName(f.cluster); err != nil {
		return nil, fault.Usage("--cluster: %w", err)
	}
	store, err := bucket.Open(f.Record, f.cluster, gce.UserClient())
	if err != nil {
		return nil, fault.Usage("%w", err)
	}
	return store, nil
}

// inTemp runs something in a folder of its own that is gone afterwards, whatever comes.
func inTemp(dir string, do func(dir string) error) (err error) {
	temp, err := os.MkdirTemp(dir, "quorate-snapshot-")
	if err != nil {
		return fault.File("--dir: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	return do(temp)
}
