package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/snapshot"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
)

func newSnapshotVerify() *cobra.Command {
	var f shelfFlags
	var output, dir string
	var newest bool
	cmd := &cobra.Command{Use: "verify NAME | --newest", Short: "Download a snapshot and check all of it",
		Long: `Download a snapshot and check all of it: the stored size and hash, the hash that etcd put at its end, every page of the database,
and the revision that its name says. It needs room for the uncompressed database and leaves nothing behind.`,
		Example: `  quorate snapshot verify --newest --config cluster.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || newest == (len(args) == 1) {
				return fault.Usage("either the name of one snapshot or --newest is needed (quorate " +
					"snapshot list has the names)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := f.open()
			if err != nil {
				return err
			}
			list, err := store.Snapshots(cmd.Context())
			if err != nil {
				return err
			}
			s, err := chosen(store, list, args)
			if err != nil {
				return err
			}
			begin := time.Now()
			v := verified{Snapshot: s}
			err = inTemp(dir, func(temp string) (err error) {
				v.Database, err = snapshot.Fetch(cmd.Context(), store, s, filepath.Join(temp, "db"))
				return err
			})
			if err != nil {
				return err
			}
			v.Took = time.Since(begin).Seconds()
			return terminal.PrintAs(cmd.OutOrStdout(), output, v, func(w io.Writer) {
				fmt.Fprintf(w, "Snapshot %s of %s is whole: revision %d, %d key revisions, %s (%s stored), checked "+
					"in %.1f s.\n",
					s.Name, terminal.When(s.Time), v.Database.Revision, v.Database.Entries, terminal.Mebibytes(s.Size),
					terminal.Mebibytes(s.Stored), v.Took)
			})
		}}
	f.add(cmd)
	cmd.ValidArgsFunction = command.Completing(func(ctx context.Context) ([]string, error) {
		return cluster.Snapshots(ctx, f.open)
	})
	cmd.Flags().BoolVar(&newest, "newest", false, "the newest snapshot of the newest epoch")
	cmd.Flags().StringVar(&dir, "dir", os.TempDir(), "where there is room for the uncompressed database")
	command.AddOutput(cmd, &output)
	return cmd
}

// verified is a snapshot and what was found in it.
type verified struct {
	Snapshot record.Snapshot  `json:"snapshot"`
	Database datadir.Database `json:"database"`
	Took     float64          `json:"tookSeconds"`
}

// chosen is the snapshot that is named, or the newest one.
func chosen(store *bucket.Store, list []record.Snapshot, args []string) (record.Snapshot, error) {
	if len(list) == 0 {
		return record.Snapshot{}, fault.Record("there is no snapshot in %s", store)
	}
	last := list[len(list)-1]
	if len(args) == 0 {
		return last, nil
	}
	name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(args[0], "snapshots/"), ".json"), ".db.zst")
	for _, s := range list {
		if s.Name == name {
			return s, nil
		}
	}
	return record.Snapshot{}, fault.Record("%s has no snapshot %q; the newest of its %d is %s (quorate snapshot list "+
		"has all)", store, args[0], len(list), last.Name)
}
