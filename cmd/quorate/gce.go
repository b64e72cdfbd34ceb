package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

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
	"github.com/quorate/quorate/internal/setup"
)

func newGCE() *cobra.Command {
	return command.Group(&cobra.Command{Use: "gce", Short: "Check what a cluster needs of Google Cloud"}, newGCECheck())
}

func newGCECheck() *cobra.Command {
	var f gceFlags
	cmd := &cobra.Command{Use: "check", Short: "Check bucket, key, permissions, VMs, disks and network, and say what " +
		"mends them",
		Args: command.NoArguments,
		Long: `Check what a cluster needs of its Google Cloud project: bucket, key, permissions of the masters'
account, VMs, disks, firewall, way out, endpoint. Each finding says why it matters, and has the commands that mend it.
It only reads.

It can be run before the masters are created, and after. With a section gce in the document it also judges those that
are to be made; 'quorate create' and 'quorate add' run the same checks. What only a master can see (its metadata, names, time) is in
docs/first-contact.md, and what only a write can prove is in 'quorate record check --impersonate ACCOUNT'.

Exit code 0: nothing has to be mended; warnings do not count. 1: something has to be.`,
		Example: `  quorate gce check --config cluster.yaml
  # Before 'quorate record init', with a document without a section gce:
  quorate gce check --config cluster.yaml --project example --region us-central1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := f.check(cmd.Context())
			if err != nil {
				return err
			}
			err = terminal.PrintAs(cmd.OutOrStdout(), f.output, findings,
				func(w io.Writer) { recordtext.ShowFindings(w, findings) })
			if failed := recordtext.CountFailed(findings); err == nil && failed > 0 {
				return fmt.Errorf("%d of %d checks failed", failed, len(findings))
			}
			return err
		}}
	f.Add(cmd)
	command.AddOutput(cmd, &f.output)
	cmd.Flags().StringVar(&f.project, "project", "",
		"the project; that of the document or the record where this is not given")
	cmd.Flags().StringVar(&f.region, "region", "",
		"the masters' region; that of the document or the record where this is not given")
	cmd.Flags().StringVar(&f.key, "key", "", "the key, gcpkms://…, where the document says another")
	cmd.Flags().StringVar(&f.account, "service-account", "",
		"the masters' service account; that of the document or of their VMs where this is not given")
	return cmd
}

// gceFlags are the flags of gce check.
type gceFlags struct {
	cluster.Flags
	output, project, region, key, account string
}

// imageDisk is the device name of the data disk that quorate's image mounts.
const imageDisk = "quorate-data"

// check asks for everything, and judges it.
func (f *gceFlags) check(ctx context.Context) ([]record.Finding, error) {
	ctx, cancel := withinSurvey(ctx)
	defer cancel()
	c, err := f.LoadWithKey()
	if err != nil {
		return nil, err
	}
	if f.key != "" {
		c.Seal.Key = f.key
		if err := c.Validate(); err != nil {
			return nil, fault.Usage("--key: %w", err)
		}
	}
	store, err := cluster.OpenRecord(c)
	if err != nil {
		return nil, err
	}
	facts := setup.Wanted(c, dataDevice(c), nil)
	byFlags := f.project != "" && f.region != ""
	f.project, f.region = cmp.Or(f.project, facts.Project), cmp.Or(f.region, facts.Region)
	begun, err := f.place(ctx, store, byFlags)
	if err != nil {
		return nil, err
	}
	if f.project == "" || f.region == "" {
		return begun, nil
	}
	facts.Project, facts.Region, facts.Account = f.project, f.region, cmp.Or(f.account, facts.Account)
	found, err := judged(ctx, c, store, facts)
	return append(begun, found...), err
}

// surveyWait is how long all questions about a project may take together. A test in which nobody answers waits less.
var surveyWait = 30 * time.Second

// withinSurvey bounds what is asked about a project.
func withinSurvey(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, surveyWait, fmt.Errorf("the %s for all questions are over", surveyWait))
}

// judged asks for everything that the facts name, and judges it.
func judged(ctx context.Context, c *replica.Cluster, store *bucket.Store, facts setup.Facts) ([]record.Finding, error) {
	survey, err := gce.NewSurvey(gce.SurveyConfig{Project: facts.Project, Region: facts.Region, Cluster: c.Name,
		Endpoint: c.Compute.Endpoint, Client: gce.UserClient(), Attribute: agent.ClusterAttribute,
		ClusterOf: clusterOf, Wait: surveyWait})
	if err != nil {
		return nil, err
	}
	if err := survey.Ask(ctx, &facts, store.Survey); err != nil {
		if facts.Bucket.Fault != nil && facts.Bucket.Fault.Why == setup.Failed {
			err = record.AtFault(err)
		}
		return nil, fmt.Errorf("%w. Nothing was checked, and nothing made: see whether this machine reaches Google, "+
			"directly or by the proxy of HTTPS_PROXY", err)
	}
	return setup.Judge(facts), nil
}

// place completes project and region from the inception, which also says whether they are the cluster's. It cannot be
// changed, so a difference is found before anything is made in the wrong place.
// A record that cannot be read is an error, but where the flags name both. A bucket that does not exist is a finding:
// it is mended like others, and if only it can be judged project and region stay empty.
func (f *gceFlags) place(ctx context.Context, store *bucket.Store, byFlags bool) ([]record.Finding, error) {
	v, err := store.View(ctx)
	named := f.project != "" && f.region != ""
	switch i := v.Inception; {
	case err != nil && byFlags:
		return nil, nil
	case err != nil:
		return f.withoutBucket(ctx, store, err)
	case i == nil && !named:
		return nil, fault.Usage("--project and --region are needed: the record has not begun, and does " +
			"not name them")
	case i == nil:
		return []record.Finding{{Level: record.Warn, Subject: "record", What: "it has not begun",
			Why: "Without an inception no master forms a cluster. It names region and project for good, so mend " +
				"first what is found here.",
			Mend: []string{"quorate record init"}}}, nil
	case f.region != "" && f.region != i.Region:
		return nil, fault.Usage("region %q, of --region or the document: the record of cluster %s is of %s", f.region,
			i.Name, i.Region)
	default:
		f.region = i.Region
		if f.project == "" {
			f.project = i.ProjectNumber
		}
		return []record.Finding{{Level: record.OK, Subject: "record",
			What: fmt.Sprintf("it begins on %s, in %s of project %s", terminal.When(i.Time), i.Region,
				i.ProjectNumber)}}, nil
	}
}

// withoutBucket judges a bucket that does not exist, where nothing else can be: without project and region. That the
// record is not read for another reason is an error.
func (f *gceFlags) withoutBucket(ctx context.Context, store *bucket.Store, unread error) ([]record.Finding, error) {
	facts := setup.Facts{Project: f.project, Region: f.region}
	store.Survey(ctx, &facts)
	named := f.project != "" && f.region != ""
	switch absent := facts.Bucket.Fault != nil && facts.Bucket.Fault.Why == setup.Absent; {
	case absent && named:
		return nil, nil // it is one of the checks that follow
	case absent:
		return append(setup.JudgeAbsence(facts), record.Finding{Level: record.Warn, Subject: "project",
			What: "nothing else was checked", Why: "Project and region are in the record, in the document's section " +
				"gce, or said with --project and --region."}), nil
	case named:
		return nil, unread
	}
	return nil, fmt.Errorf("%w: without it --project and --region are needed", unread)
}

// dataDevice is the device name of the data disk.
func dataDevice(c *replica.Cluster) string { return cmp.Or(c.Etcd.DataDisk, imageDisk) }

// clusterOf is the cluster that an instance's document names; empty where it cannot be read: then it is nobody's. The
// image may have the rest of the document, so it is not judged.
func clusterOf(document string) string {
	var c struct {
		Name string `json:"name"`
	}
	if yaml.Unmarshal([]byte(document), &c) != nil {
		return ""
	}
	return c.Name
}
