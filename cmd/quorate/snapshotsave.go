package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/snapshot"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

// whyByHand is what a snapshot is for that a person saves.
const whyByHand = "by hand"

func newSnapshotSave() *cobra.Command {
	var output, run, why string
	cmd := &cobra.Command{Use: "save", Short: "Save a snapshot now (on a master, as root)", Args: command.NoArguments,
		Long: `Save a snapshot now, through the etcd member of this master. All that was acknowledged before is in it. The database is fetched to the data disk,
verified, compressed and stored in the record; then what has outlived its retention is deleted. The member must be a voter with a quorum, and the
data disk must have room for one more database.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fault.RequireRoot("snapshot save"); err != nil {
				return err
			}
			s, err := saveSnapshot(cmd.Context(), run, why)
			if err != nil {
				return err
			}
			if s.RetentionError != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "quorate: the snapshot is saved, but %s\n", s.RetentionError)
			}
			return terminal.PrintAs(cmd.OutOrStdout(), output, s, func(w io.Writer) { showSaved(w, s) })
		}}
	cmd.Flags().StringVar(&why, "why", whyByHand, "what is written down as its reason")
	cobra.CheckErr(cmd.Flags().MarkHidden("why")) // the agent's
	command.AddOutput(cmd, &output)
	master.AddRunDir(cmd, &run)
	return cmd
}

// savedSnapshot is what `snapshot save -o json` prints.
type savedSnapshot struct {
	snapshot.Saved
	// Deleted are the snapshots that had outlived their retention.
	Deleted        []string `json:"deleted,omitempty"`
	RetentionError string   `json:"retentionError,omitempty"`
}

// saveSnapshot saves one through this machine's own member. That old ones could not be deleted does not make the new
// one less.
func saveSnapshot(ctx context.Context, run, why string) (out savedSnapshot, err error) {
	self, c, _, ok, err := agent.Remembered(run, master.BakedFile)
	if err == nil && !ok {
		err = fmt.Errorf("%w: none has begun in %s in this boot: snapshots are saved on a master, through its own "+
			"etcd member", agent.ErrNoAgent, run)
	}
	if err != nil {
		return out, err
	}
	// On a master, also where a person calls it: as the agent does, which calls it most.
	store, err := bucket.Open(c.Record.URL, c.Name, gce.NewMetadata(gce.MetadataConfig{}).Client())
	if err != nil {
		return out, err
	}
	job, err := snapshotJob(self, c, store, why)
	if err != nil {
		return out, err
	}
	if out.Saved, err = snapshot.Save(ctx, job); err != nil {
		return out, err
	}
	keep := snapshot.Retention{Hourly: c.Etcd.Snapshots.Hourly.Duration(), Daily: c.Etcd.Snapshots.Daily.Duration()}
	if out.Deleted, err = snapshot.KeepRetention(ctx, store, time.Now(), keep); err != nil {
		out.RetentionError = err.Error()
	}
	return out, nil
}

func snapshotJob(self replica.Identity, c *replica.Cluster, store *bucket.Store, why string) (snapshot.Job,
	error) {
	tlsConfig, err := certs.EtcdTLS(certs.Files{Dir: filepath.Join(c.Etcd.DataDir, "pki")})
	if err != nil {
		return snapshot.Job{}, fmt.Errorf("read the certificate for etcd: %w", err)
	}
	return snapshot.Job{DNSName: self.DNSName(c.Name), TLS: tlsConfig,
		Dir: snapshot.Dir(c.Etcd.DataDir),
		By:  self.Place, Why: why, Store: store}, nil
}

func showSaved(w io.Writer, s savedSnapshot) {
	fmt.Fprintf(w, "Saved snapshot %s: revision %d, %s (%s stored), in %.1f s.\n", s.Name, s.Revision,
		terminal.Mebibytes(s.Size), terminal.Mebibytes(s.Stored), s.Took)
	if s.Local != "" {
		fmt.Fprintf(w, "A copy stays on this machine: %s\n", s.Local)
	}
	if n := len(s.Deleted); n > 0 {
		fmt.Fprintf(w, "%d older snapshots had outlived their retention and were deleted.\n", n)
	}
}
