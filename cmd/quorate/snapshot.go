package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/recordtext"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
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

func newSnapshotList() *cobra.Command {
	var f shelfFlags
	var output string
	cmd := &cobra.Command{Use: "list", Short: "List the snapshots in the record, the newest last",
		Args: command.NoArguments,
		Example: `  quorate snapshot list --config cluster.yaml
  quorate snapshot list --record gs://example-quorate --cluster prod-1 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := f.open()
			if err != nil {
				return err
			}
			list, err := store.Snapshots(cmd.Context())
			if err != nil {
				return err
			}
			where := store.String()
			if len(list) == 0 {
				if where, err = whereNothingIs(cmd.Context(), store); err != nil {
					return err
				}
				if output != "" && where != store.String() {
					fmt.Fprintf(cmd.ErrOrStderr(), "quorate: there is no snapshot in %s\n", where)
				}
			}
			return terminal.PrintAs(cmd.OutOrStdout(), output, append([]record.Snapshot{}, list...),
				func(w io.Writer) { showSnapshots(w, where, list) })
		}}
	f.add(cmd)
	command.AddOutput(cmd, &output)
	return cmd
}

// whereNothingIs names a place without snapshots, and says so where there is no cluster either: a name that was
// mistyped resembles a disaster.
func whereNothingIs(ctx context.Context, store *bucket.Store) (string, error) {
	v, err := store.View(ctx)
	switch {
	case err != nil || v.Inception != nil:
		return store.String(), err
	case v.LostInception():
		return store.String() + ", and " + recordtext.InceptionLost, nil
	}
	return store.String() + ", where no cluster has begun either, or its record is lost: check the record's URL and " +
		"the cluster's name", nil
}

func showSnapshots(w io.Writer, where string, list []record.Snapshot) {
	if len(list) == 0 {
		fmt.Fprintf(w, "There is no snapshot in %s.\n", where)
		return
	}
	var rows []terminal.Row
	for _, s := range list {
		rows = append(rows, terminal.Row{Cells: []string{s.Name, terminal.When(s.Time),
			strconv.FormatInt(s.Revision, 10), terminal.Mebibytes(s.Size), terminal.Mebibytes(s.Stored),
			terminal.OrNone(s.EtcdVersion), terminal.OrNone(s.By), terminal.OrNone(s.Why)}})
	}
	fmt.Fprintf(w, "%d in %s\n", len(list), where)
	terminal.PrintTableBelow(w, []string{"SNAPSHOT", "TAKEN", "REVISION", "SIZE", "STORED", "ETCD", "BY", "WHY"}, rows)
}
