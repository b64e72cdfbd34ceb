package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/agent"
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

func newRecord() *cobra.Command {
	return command.Group(&cobra.Command{Use: "record", Short: "Begin, check, show or rebuild a cluster's record",
		Long: `The record holds the write-once facts that must outlive a cluster's etcd: that the cluster was created on purpose, who may
seed it, which incarnation of a replica is current. Without its inception no master seeds and no master makes a CA.`},
		newRecordInit(), newRecordCheck(), newRecordShow(), newRecordRebuild())
}

func newRecordInit() *cobra.Command {
	var f cluster.Flags
	var region, project string
	cmd := &cobra.Command{Use: "init", Short: "Write the inception: this cluster begins here, on purpose",
		Args: command.NoArguments,
		Long: `Write the inception: this cluster begins here, on purpose. The first master that boots afterwards forms the cluster. A master
of another name, region or project refuses to take part. The inception is written once and never changed.`,
		Example: `  quorate record init --config cluster.yaml --region us-central1 \
    --project-number $(gcloud projects describe PROJECT --format='value(projectNumber)')`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.Needed(cmd, "region", "project-number"); err != nil {
				return err
			}
			if err := checkPlace(region, project); err != nil {
				return err
			}
			c, err := f.Load()
			if err != nil {
				return err
			}
			return initRecord(cmd.Context(), cmd.OutOrStdout(), c, region, project)
		}}
	f.Add(cmd)
	cmd.Flags().StringVar(&region, "region", "", "the GCE region that all masters are in, such as us-central1")
	cmd.Flags().StringVar(&project, "project-number", "",
		"the number of the GCE project that all masters are in, such as 271828182845")
	return cmd
}

var (
	regionForm  = regexp.MustCompile(`^[a-z]+(-[a-z]+)+[0-9]+$`)
	zoneForm    = regexp.MustCompile(`^[a-z]+(-[a-z]+)+[0-9]+-[a-z]$`)
	projectForm = regexp.MustCompile(`^[1-9][0-9]{0,19}$`)
)

// checkPlace refuses what no master would ever match: each compares the inception with its own metadata, and the
// inception cannot be changed.
func checkPlace(region, project string) error {
	switch {
	case zoneForm.MatchString(region):
		return fault.Usage("--region %q is a zone; its region is %s", region, replica.RegionOf(region))
	case !regionForm.MatchString(region):
		return fault.Usage("--region %q: a region such as us-central1 is needed", region)
	case !projectForm.MatchString(project):
		return fault.Usage("--project-number %q: the number is needed, not the id: gcloud projects "+
			"describe PROJECT --format='value(projectNumber)'", project)
	}
	return nil
}

func initRecord(ctx context.Context, out io.Writer, c *replica.Cluster, region, project string) error {
	store, err := cluster.OpenRecord(c)
	if err != nil {
		return err
	}
	// An inception is never changed: another cluster's, in a record that has lost its own, would be there for good.
	r, err := store.Remains(ctx)
	if err != nil {
		return fmt.Errorf("%w; nothing was written", err)
	}
	if r.LostInception() {
		return fault.Record("%s: %s; nothing was changed", store, recordtext.InceptionLost)
	}
	uid := make([]byte, 16)
	rand.Read(uid) // never fails
	got, won, err := store.CreateInception(ctx, record.Inception{
		UID: hex.EncodeToString(uid), Name: c.Name, ProjectNumber: project, Region: region, Time: time.Now().UTC()})
	if err != nil {
		return err
	}
	if !won {
		return fault.Record("%s: the record began already, on %s (uid %s, region %s, project %s); nothing was changed",
			store, terminal.When(got.Time), got.UID, got.Region, got.ProjectNumber)
	}
	fmt.Fprintf(out, "The record of cluster %s begins in %s (uid %s).\n", c.Name, store, got.UID)
	fmt.Fprintf(out, "Next: boot masters in zones of %s with this document as instance attribute %s. One forms the "+
		"cluster.\n",
		region, agent.ClusterAttribute)
	return nil
}

func newRecordCheck() *cobra.Command {
	var f cluster.Flags
	var output, account string
	cmd := &cobra.Command{Use: "check", Short: "Check that the bucket keeps its promises and that nothing is lost",
		Args: command.NoArguments,
		Long: `Check that the bucket keeps its promises and that nothing is lost in it. To see that an object is not
overwritten it writes one under checks/, and tries to delete it. To see whether marks can be overwritten it writes
marks/probe.json.

Masters may overwrite marks, and must be refused a deletion under checks/. That is proven only with their rights: on a
master without --config, where this acts as the VM's service account, or with --impersonate. 'quorate gce check' checks
the rest of the project.`,
		Example: `  quorate record check --config cluster.yaml
  quorate record check --config cluster.yaml \
    --impersonate prod-1-master@example.iam.gserviceaccount.com`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.Load()
			if err != nil {
				return err
			}
			store, acting, err := openForCheck(cmd.Context(), c, account, f.OfAgent())
			if err != nil {
				return err
			}
			findings := store.Check(cmd.Context(), acting)
			err = terminal.PrintAs(cmd.OutOrStdout(), output, findings,
				func(w io.Writer) { recordtext.ShowFindings(w, findings) })
			if failed := recordtext.CountFailed(findings); err == nil && failed > 0 {
				return fault.Record("%s: %d of %d checks failed", store, failed, len(findings))
			}
			return err
		}}
	f.Add(cmd)
	command.AddOutput(cmd, &output)
	cmd.Flags().StringVar(&account, "impersonate", "", "act as this service account, the masters'; it takes "+
		"roles/iam.serviceAccountTokenCreator on it")
	return cmd
}

// openForCheck opens the record as a service account, on a master as its VM's, and else as whoever runs the command.
// acting is the masters' account where it acts as that.
func openForCheck(ctx context.Context, c *replica.Cluster, account string, onMaster bool) (store *bucket.Store,
	acting string, err error) {
	if account != "" {
		store, err = bucket.Open(c.Record.URL, c.Name, gce.ImpersonatingClient(account))
		return store, account, err
	}
	if !onMaster {
		store, err = cluster.OpenRecord(c)
		return store, "", err
	}
	metadata := gce.NewMetadata(gce.MetadataConfig{})
	if acting, err = metadata.Account(ctx); err != nil {
		return nil, "", fmt.Errorf("find out whom this master acts as: %w", err)
	}
	store, err = bucket.Open(c.Record.URL, c.Name, metadata.Client())
	return store, acting, err
}
