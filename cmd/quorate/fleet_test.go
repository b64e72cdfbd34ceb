package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/fleet/show"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// fleetProject is a project with a cluster whose masters are well, or with nothing at all. Their images are answered
// here.
type fleetProject struct {
	t        *testing.T
	document string
	store    *bucket.Store
	reports  *bucket.Reports
	// changes counts the requests to the Compute API that would change something.
	changes atomic.Int32
}

func serveFleet(t *testing.T, masters int) *fleetProject {
	t.Helper()
	return serveFleetIn(t, wholeProject(), masters)
}

// serveFleetIn is serveFleet in a project that may lack something.
func serveFleetIn(t *testing.T, all *checkedProject, masters int) *fleetProject {
	t.Helper()
	all.masters = all.masters[:masters]
	all.Zones = []string{"us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f"}
	p := &fleetProject{t: t}
	served, err := buckets.Open(t.TempDir(), all.Settings)
	p.must(err)
	apis := localgce.NewAPIs(func() []instance.VM { return all.masters }, served, all.Settings)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, isImage := strings.CutPrefix(r.URL.Path, "/compute/v1/projects/quorate-local/global/images/")
		switch {
		case isImage:
			fmt.Fprintf(w, `{"kind": "compute#image", "name": %q, "status": "READY"}`, name)
			return
		case strings.HasPrefix(r.URL.Path, "/compute/") && r.Method != http.MethodGet:
			p.changes.Add(1)
		}
		apis.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.document = filepath.Join(t.TempDir(), "cluster.yaml")
	text := fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: demo
endpoint: {externalIP: 203.0.113.10}
record: {url: "gs://%s?endpoint=%s"}
seal: {key: gcpkms://projects/%s/locations/us-central1/keyRings/quorate/cryptoKeys/demo}
compute: {endpoint: %s/compute/v1/}
gce:
  project: quorate-local
  region: us-central1
  zones: [us-central1-a, us-central1-b, us-central1-c]
  image: quorate-master
  serviceAccount: %s
`, instance.BucketName, server.URL, instance.ProjectID, server.URL, instance.MastersAccount())
	p.must(os.WriteFile(p.document, []byte(text), 0o600))
	c, err := cluster.Load(p.document)
	p.must(err)
	p.store, err = cluster.OpenRecord(c)
	p.must(err)
	p.reports, err = cluster.OpenReports(c)
	p.must(err)
	if masters > 0 {
		p.form(all.masters)
	}
	return p
}

func (p *fleetProject) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// form writes the record of a cluster that has been formed, and what its first master, which leads, reports.
func (p *fleetProject) form(masters []instance.VM) {
	ctx, began := p.t.Context(), time.Now().Add(-time.Hour)
	_, _, err := p.store.CreateInception(ctx, record.Inception{UID: "u", Name: "demo",
		ProjectNumber: fmt.Sprint(instance.ProjectNumber), Region: "us-central1", Time: began})
	p.must(err)
	for n, m := range masters {
		place, id := replica.Place{Zone: m.Zone, Name: m.Name}, fmt.Sprint(m.ID)
		if n == 0 {
			_, _, err = p.store.CreateClaim(ctx, 1, record.Claim{Token: "t", MaxLearners: 4, Time: began,
				Seeder: record.Seeder{Place: place, InstanceID: id}, Source: record.Source{Kind: record.SourceEmpty}})
			p.must(err)
			_, _, err = p.store.CreateOutcome(ctx, 1, record.Outcome{Time: began,
				Formed: &record.Formed{ClusterID: 0xc1, MemberID: 0xa1}})
			p.must(err)
		}
		disk := fmt.Sprint(m.DataDisk.ID)
		_, _, err = p.store.CreateIncarnation(ctx, record.Incarnation{Place: place, Number: 1, InstanceID: id,
			BootID: "b", Epoch: 1, DiskID: disk, Time: began})
		p.must(err)
		_, _, err = p.store.ConfirmIncarnation(ctx, place, 1, record.Started{Epoch: 1, DiskID: disk,
			MemberID: record.MemberID(0xa1 + n), Time: began})
		p.must(err)
	}
	p.report(masters, len(masters))
}

// report has all masters report; the leader hears of the first ones.
func (p *fleetProject) report(masters []instance.VM, heard int) {
	var members []report.Member
	for n, m := range masters {
		members = append(members, report.Member{Name: m.Zone + "." + m.Name, ID: record.MemberID(0xa1 + n).String(),
			Role: "voter", Started: true, Leader: n == 0, Heard: new(n < heard)})
	}
	for n, m := range masters {
		p.must(p.reports.WriteReport(p.t.Context(), report.Report{Place: replica.Place{Zone: m.Zone, Name: m.Name},
			InstanceID: fmt.Sprint(m.ID), Cluster: "demo", Epoch: 1, ClusterID: record.MemberID(0xc1).String(),
			Phase: "keep", Ready: true, Member: members[n].ID, Members: members}))
	}
}

// quorate runs a command, which must change nothing and end with a code.
func (p *fleetProject) quorate(code int, args ...string) (out, errs string) {
	p.t.Helper()
	before, err := p.store.View(p.t.Context())
	p.must(err)
	var stdout, stderr bytes.Buffer
	got := run(append(args, "--config", p.document), &stdout, &stderr)
	if got != code {
		p.t.Errorf("quorate %s: exit code %d, want %d:\n%s%s", strings.Join(args, " "), got, code, &stdout, &stderr)
	}
	after, err := p.store.View(p.t.Context())
	p.must(err)
	begun := (before.Inception == nil) != (after.Inception == nil)
	if n := p.changes.Load(); n != 0 || begun || len(after.Orders) != len(before.Orders) {
		p.t.Errorf("quorate %s: %d changes of VMs and disks, %d orders, record begun: %t", strings.Join(args, " "), n,
			len(after.Orders)-len(before.Orders), begun)
	}
	return stdout.String(), stderr.String()
}

func TestAListOfMasters(t *testing.T) {
	p := serveFleet(t, 3)
	out, _ := p.quorate(exitOK, "list")
	for _, want := range []string{"NAME      ZONE           VM       ETCD          READY  IMAGE",
		"master-a  us-central1-a  RUNNING  voter, leads  yes ", "master-c  us-central1-c  RUNNING  voter         yes "} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	out, _ = p.quorate(exitOK, "list", "-o", "json")
	var l fleet.Listing
	if err := json.Unmarshal([]byte(out), &l); err != nil || len(l.Replicas) != 3 || !l.Replicas[0].Leads ||
		l.Replicas[1].DataDisk != "master-b-data" {
		t.Errorf("%v: %s", err, out)
	}
}

// A dry run prints the plan, with what each step risks, and a command that nobody can be asked about does nothing.
func TestPlansArePrinted(t *testing.T) {
	for _, tc := range []struct {
		masters int
		args    string
		want    []string // in the text, in this order
		steps   int
	}{
		{0, "create", []string{"1. Begin the record: cluster demo is created here, on purpose, in us-central1.",
			"Then etcd has no member.", "2. Make data disk demo-master-", "7. Make VM demo-master-",
			"8. Wait until demo-master-", " is a voter and ready.", "3 voters: one further voter may fail."}, 10},
		{0, "create --zone us-central1-f", []string{" in us-central1-f.",
			"Note: 3 of 3 replicas are in zone us-central1-f: the loss of that zone stops the cluster."}, 10},
		{3, "add --zone us-central1-b", []string{"1. Order that the cluster has 4 replicas.",
			"To undo it: quorate orders give replicas 3", "in us-central1-b.",
			"Note: 4 replicas survive no more failures than 3."}, 4},
		{3, "remove master-b", []string{"1. Order us-central1-b.master-b to leave", "Then etcd has 2 members, 2 voters",
			"Clients: Those connected to it reconnect:", "It cannot be undone.",
			"Note: Its data disk master-b-data in us-central1-b is kept."}, 4},
		{3, "remove --zone us-central1-b --delete-disk", []string{"Delete data disk master-b-data in us-central1-b (201)."},
			5},
		{3, "replace us-central1-b.master-b", []string{"1. Make data disk demo-master-", "Order us-central1-b.master-b"},
			6},
		{3, "replace master-b --new-disk", []string{"1. Delete VM master-b in us-central1-b (101); its data disk is kept.",
			"2. Make data disk master-b-data-101 in us-central1-b."}, 4},
		{3, "roll --image quorate-2", []string{"us-central1-a.master-a: gce.image is ",
			"us-central1-a.master-a: gce.machineType is e2-standard-2; e2-standard-4 is wanted.", "1. Delete VM master-b",
			"7. Delete VM master-a"}, 9},
		{3, "delete", []string{"Delete VM master-a", "Note: Its record, with the snapshots"}, 6},
	} {
		t.Run(tc.args, func(t *testing.T) {
			p := serveFleet(t, tc.masters)
			args := strings.Fields(tc.args)
			out, _ := p.quorate(exitOK, append(args, "--dry-run")...)
			for rest, n := strings.Join(strings.Fields(out), " "), 0; n < len(tc.want); n++ {
				_, after, found := strings.Cut(rest, tc.want[n])
				if !found {
					t.Fatalf("lacks %q:\n%s", tc.want[n], out)
				}
				rest = after
			}
			if !strings.HasSuffix(out, "Nothing was changed.\n") {
				t.Errorf("the end: %s", out)
			}
			out, _ = p.quorate(exitOK, append(args, "--dry-run", "-o", "json")...)
			var a show.Answer
			if err := json.Unmarshal([]byte(out), &a); err != nil || a.Command != args[0] || a.Cluster != "demo" ||
				a.Done || len(a.Steps) != tc.steps {
				t.Errorf("%v, %d steps: %s", err, len(a.Steps), out)
			}
			out, errs := p.quorate(exitUsage, args...)
			if !strings.Contains(out, "1. ") || !strings.Contains(errs, "There is no terminal to ask on; add --yes") {
				t.Errorf("%s%s", out, errs)
			}
		})
	}
}

func TestWhatIsDoneAlreadyIsSaid(t *testing.T) {
	p := serveFleet(t, 3)
	for _, args := range [][]string{{"create", "--yes"}, {"create", "--dry-run"}} {
		if out, _ := p.quorate(exitOK, args...); out != "Nothing is left to do.\n" {
			t.Errorf("%v: %s", args, out)
		}
	}
	if out, _ := p.quorate(exitOK, "create", "--yes", "-o", "json"); !strings.Contains(out, `"steps": [],`) ||
		!strings.Contains(out, `"done": true`) {
		t.Error(out)
	}
}

// What is refused changes nothing, and its exit code says what is at fault: the command line, the document, the record,
// or how the cluster is. The last may pass by itself: it is waited for, and said meanwhile.
func TestRefusalsOfTheFleet(t *testing.T) {
	t.Parallel()
	whole := wholeProject().masters
	for _, tc := range []struct {
		masters, heard int
		args           string
		code           int
		want           string
	}{
		{3, 3, "remove master-x --yes", exitUsage, `No replica is called "master-x". There are: us-central1-a.master-a`},
		{3, 3, "remove --yes", exitUsage, "Name a replica, or a zone with --zone."},
		{3, 3, "add --zone europe-west1-b --yes", exitUsage, "Zone europe-west1-b is not in us-central1"},
		{3, 3, "create --zone us-central1 --yes", exitUsage, `--zone "us-central1": a zone such as us-central1-a`},
		{0, 0, "create --project-number demo --yes", exitUsage, "a number such as 271828182845 is needed"},
		{3, 3, "replace master-b --new-disk --delete-disk --yes", exitUsage, "leave it out"},
		{3, 3, "replace master-b --again --yes", exitUsage, "for --in-place and --new-disk alone"},
		{1, 1, "replace master-a --in-place --yes", exitUsage, "accept it with --accept-outage"},
		{1, 1, "remove master-a --yes", exitUsage, "master-a is the last replica."},
		{3, 2, "remove master-b --yes", exitRefused, "which is no quorum"},
		{3, 2, "roll --image quorate-2 --yes", exitRefused, "us-central1-c.master-c is not well."},
		{0, 0, "add --yes", exitRecord, "The record has not begun"},
		{3, 3, "add --record gs://other?endpoint=http://127.0.0.1:1 --yes", exitRecord, "other"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			if tc.code == exitRefused {
				realtest.OnlyInCases(t) // such a step is held back for 45 s before it is refused
			}
			t.Parallel()
			p := serveFleet(t, tc.masters)
			if tc.heard < tc.masters {
				p.report(whole[:tc.masters], tc.heard)
			}
			out, errs := p.quorate(tc.code, strings.Fields(tc.args)...)
			waits := 0
			if tc.code == exitRefused {
				waits = 1
			}
			why := strings.Join(strings.Fields(errs), " ")
			if !strings.Contains(why, tc.want) || strings.Count(out, "\n") != waits {
				t.Errorf("want %q: %q %q", tc.want, errs, out)
			}
		})
	}
}

// The document becomes an instance attribute, so it has to be a file, and to say what VMs are made of.
func TestADocumentForVMs(t *testing.T) {
	t.Setenv(cluster.ConfigVariable, "")
	lacks := filepath.Join(t.TempDir(), "lacks.yaml")
	if err := os.WriteFile(lacks, []byte(`apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: demo
endpoint: {externalIP: 203.0.113.10}
record: {url: "gs://record"}
seal: {key: gcpkms://projects/p/locations/us-central1/keyRings/quorate/cryptoKeys/demo}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"list --config " + lacks: "3: it has no section gce",
		"create -f " + lacks: "3: it has no section gce", "list --config -": "2: name the file",
		"roll": "2: name the file"} {
		code, text, _ := strings.Cut(want, ": ")
		var out, errs strings.Builder
		if got := run(strings.Fields(args), &out, &errs); fmt.Sprint(got) != code ||
			!strings.Contains(errs.String(), text) {
			t.Errorf("%s: %d %s", args, got, errs.String())
		}
	}
}
