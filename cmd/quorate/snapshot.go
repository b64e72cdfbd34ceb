package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

func newSnapshot() *cobra.Command {
	return group(&cobra.Command{Use: "snapshot", Short: "Save, list or verify snapshots of etcd",
		Long: `A snapshot is the whole database of etcd at one moment, verified, compressed and kept in the record's bucket under snapshots/. The
masters save one by themselves (etcd.snapshots in the Cluster document); these commands save one now, list them and verify them.`},
		newSnapshotSave(), newSnapshotList(), newSnapshotVerify())
}

// shelfFlags find a record's snapshots: by the Cluster document or, where that is lost as well, by the record's URL and
// the cluster's name.
type shelfFlags struct {
	clusterFlags
	cluster string
}

func (f *shelfFlags) add(cmd *cobra.Command) {
	f.clusterFlags.add(cmd)
	cmd.Flags().StringVar(&f.cluster, "cluster", "",
		"the cluster's name; with --record it takes the place of the document")
}

func (f *shelfFlags) open() (*bucket.Store, error) {
	switch {
	case f.emptied("cluster"):
		return nil, &usageError{errors.New("--cluster is empty: want the cluster's name, or leave the flag out")}
	case f.cluster == "":
		return f.clusterFlags.open()
	case f.record == "":
		return nil, &usageError{errors.New("--cluster needs --record: the two take the place of the document")}
	}
	if err := replica.CheckName(f.cluster); err != nil {
		return nil, &usageError{fmt.Errorf("--cluster: %w", err)}
	}
	store, err := bucket.Open(f.record, f.cluster, gce.UserClient())
	if err != nil {
		return nil, &usageError{err}
	}
	return store, nil
}

// mebibytes spells a size for people.
func mebibytes(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", (n+1<<10-1)>>10)
	case n < 100<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// inTemp runs something in a folder of its own that is gone afterwards, whatever comes.
func inTemp(dir string, do func(dir string) error) (err error) {
	temp, err := os.MkdirTemp(dir, "quorate-snapshot-")
	if err != nil {
		return fileFault("--dir: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	return do(temp)
}
