package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// errRecord is in every error of a record that cannot be used.
var errRecord = errors.New("the record")

func newRecord() *cobra.Command {
	cmd := &cobra.Command{Use: "record", Short: "Begin, check or show a cluster's record", Args: cobra.NoArgs,
		Long: `The record holds the write-once facts that must outlive a cluster's etcd: that the cluster was created on purpose, who may
seed it, which incarnation of a replica is current. Without its inception no master seeds and no master makes a CA.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(newRecordInit(), newRecordCheck(), newRecordShow())
	return cmd
}

func newRecordInit() *cobra.Command {
	var f clusterFlags
	var region, project string
	cmd := &cobra.Command{Use: "init", Short: "Write the inception: this cluster begins here, on purpose", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			return initRecord(cmd.Context(), cmd.OutOrStdout(), c, region, project)
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&region, "region", "", "the GCE region that all masters are in, such as us-central1")
	cmd.Flags().StringVar(&project, "project-number", "", "the number of the GCE project that all masters are in")
	cobra.CheckErr(cmd.MarkFlagRequired("region"))
	cobra.CheckErr(cmd.MarkFlagRequired("project-number"))
	return cmd
}

func initRecord(ctx context.Context, out io.Writer, c *replica.Cluster, region, project string) error {
	store, err := record.Open(ctx, c.Record.URL, c.Name)
	if err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	uid := make([]byte, 16)
	rand.Read(uid) // never fails
	got, won, err := store.CreateInception(ctx, record.Inception{
		UID: hex.EncodeToString(uid), Name: c.Name, ProjectNumber: project, Region: region, Time: time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	if !won {
		return fmt.Errorf("%w: it began already, on %s, with cluster uid %s; nothing was changed", errRecord, got.Time.Format(time.RFC3339), got.UID)
	}
	fmt.Fprintf(out, "The record of cluster %s begins in %s (uid %s).\n", c.Name, store, got.UID)
	return nil
}

func newRecordCheck() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{Use: "check", Short: "Check that the bucket keeps its promises and that nothing is lost", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			failed := 0
			for _, finding := range store.Check(cmd.Context()) {
				fmt.Fprintln(cmd.OutOrStdout(), finding)
				if finding.Level == record.Fail {
					failed++
				}
			}
			if failed > 0 {
				return fmt.Errorf("%w: %d checks failed", errRecord, failed)
			}
			return nil
		}}
	f.add(cmd)
	return cmd
}

func newRecordShow() *cobra.Command {
	var f clusterFlags
	var output string
	cmd := &cobra.Command{Use: "show", Short: "Show what the record holds", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			v, err := store.View(cmd.Context())
			if err != nil {
				return fmt.Errorf("%w: %w", errRecord, err)
			}
			return printAs(cmd.OutOrStdout(), output, v, func(w io.Writer) { showRecord(w, v) })
		}}
	f.add(cmd)
	addOutput(cmd, &output)
	return cmd
}

func (f *clusterFlags) open(ctx context.Context) (*record.Store, error) {
	c, err := f.load()
	if err != nil {
		return nil, err
	}
	store, err := record.Open(ctx, c.Record.URL, c.Name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	return store, nil
}

func showRecord(w io.Writer, v record.View) {
	if v.Inception == nil {
		fmt.Fprintln(w, "No inception: this cluster has not begun, or this is the wrong bucket.")
		return
	}
	i := v.Inception
	fmt.Fprintf(w, "cluster %s, uid %s, region %s, project %s, since %s\n", i.Name, i.UID, i.Region, i.ProjectNumber, i.Time.Format(time.RFC3339))
	fmt.Fprintf(w, "bundle generation %d\n", v.Bundle)
	for _, e := range v.Epochs {
		fmt.Fprintf(w, "epoch %d: %s\n", e.Number, epochText(e))
	}
	for _, p := range slices.SortedFunc(maps.Keys(v.Replicas), func(a, b replica.Place) int { return cmpText(a.String(), b.String()) }) {
		for _, n := range v.Replicas[p] {
			state := "pending"
			if n.Started != nil {
				state = "member " + n.Started.MemberID.String()
			}
			fmt.Fprintf(w, "%s incarnation %d: instance %s, epoch %d, %s, since %s\n", p, n.Number, n.InstanceID, n.Epoch, state, n.Time.Format(time.RFC3339))
		}
	}
	for _, o := range v.Orders {
		state := "not done"
		if o.Done != nil {
			state = "done by " + o.Done.By
		}
		fmt.Fprintf(w, "order %d: %s by %s, %s\n", o.Number, o.Kind, o.By, state)
	}
}

func epochText(e record.Epoch) string {
	text := "its claim is lost"
	if e.Claim != nil {
		text = fmt.Sprintf("claimed by %s (from %s)", e.Claim.Seeder.Place, e.Claim.Source.Kind)
	}
	switch {
	case e.Outcome == nil:
		text += ", no outcome"
	case e.Outcome.Formed != nil:
		text += ", formed as etcd cluster " + e.Outcome.Formed.ClusterID.String()
	case e.Outcome.Abandoned != nil:
		text += ", abandoned: " + e.Outcome.Abandoned.Why
	}
	if e.Closed != nil {
		text += ", closed"
	}
	return text
}
