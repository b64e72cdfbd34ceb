package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/settings"
	"github.com/quorate/quorate/internal/record"
)

// a project's fields, as Google's APIs have them.
type fields = map[string]any

// checkedProject is a project that lacks nothing, with three masters, until a test breaks it.
type checkedProject struct {
	*settings.Settings
	masters []instance.VM
	// bucket is the record's in the document; further is what the document has in addition.
	bucket, further string
}

func wholeProject() *checkedProject {
	p := &checkedProject{Settings: settings.Whole("demo"), bucket: instance.BucketName}
	p.Addresses = []fields{{"kind": "compute#address", "name": "demo-api", "address": "203.0.113.10",
		"addressType": "EXTERNAL",
		"status":      "RESERVED"}}
	for n, zone := range []string{"us-central1-a", "us-central1-b", "us-central1-c"} {
		name := "master-" + zone[len(zone)-1:]
		label := map[string]string{"quorate-cluster": "demo"}
		p.masters = append(p.masters, instance.VM{ID: uint64(100 + n), Name: name, Zone: zone, Status: "RUNNING",
			Address: netip.AddrFrom4([4]byte{10, 128, 0, byte(11 + n)}), Labels: label,
			Attributes: map[string]string{"quorate-cluster": "name: demo\n"},
			DataDisk:   instance.Disk{ID: uint64(200 + n), Name: name + "-data", Bytes: 50 << 30}})
	}
	return p
}

// shown sets fields of the first master's resource.
func (p *checkedProject) shown(f fields) { p.masters[0].Shown = f }

// check runs the command against the project, and returns its exit code and what it printed.
func (p *checkedProject) check(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	folder := t.TempDir()
	served, err := buckets.Open(folder, p.Settings)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(localgce.NewAPIs(func() []instance.VM { return p.masters }, served, p.Settings))
	t.Cleanup(server.Close)
	document := filepath.Join(t.TempDir(), "cluster.yaml")
	text := fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: demo
endpoint: {externalIP: 203.0.113.10}
record: {url: "gs://%s?endpoint=%s"}
seal: {key: gcpkms://projects/%s/locations/us-central1/keyRings/quorate/cryptoKeys/demo}
compute: {endpoint: %s/compute/v1/}
%s`, p.bucket, server.URL, instance.ProjectID, server.URL, p.further)
	if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	inception := filepath.Join(folder, instance.BucketName, "demo", "inception.json")
	if err := os.MkdirAll(filepath.Dir(inception), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inception, fmt.Appendf(nil, `{"uid":"00112233445566778899aabbccddeeff","name":"demo",`+
		`"projectNumber":"%d","region":"us-central1","time":"2026-11-20T12:00:00Z"}`, instance.ProjectNumber),
		0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = run(append([]string{"gce", "check", "--config", document}, args...), &stdout, &stderr)
	return code, stdout.String() + stderr.String()
}

func TestAWholeProjectIsFoundWhole(t *testing.T) {
	code, out := wholeProject().check(t)
	if code != 0 || strings.Contains(out, "warn") || strings.Contains(out, "fail") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	for _, subject := range []string{"record", "apis", "bucket", "deletion", "key", "permissions", "zones", "masters",
		"disks",
		"firewall", "way out", "endpoint", "metadata"} {
		if !strings.Contains(out, "ok    "+subject+": ") {
			t.Errorf("nothing is said about %s:\n%s", subject, out)
		}
	}
}

// Each setting that people get wrong is named, with the command that mends it. What only warns ends with 0.
func TestABrokenProjectIsNamedWithItsRemedy(t *testing.T) {
	gcloud := "gcloud compute instances "
	me := []string{"serviceAccount:" + instance.MastersAccount()}
	for name, c := range map[string]struct {
		set        func(p *checkedProject)
		want, mend string
		warns      bool
	}{
		"Cloud KMS is off": {func(p *checkedProject) { p.Disabled = []string{"cloudkms.googleapis.com"} },
			"fail  apis: cloudkms.googleapis.com is not enabled", "gcloud services enable cloudkms.googleapis.com " +
				"--project=quorate-local", false},
		"a lifecycle rule deletes claims": {func(p *checkedProject) {
			p.Bucket["lifecycle"] = fields{"rule": []any{fields{"action": fields{"type": "Delete"}, "condition": fields{
				"age": 30}}}}
		}, "fail  deletion: a lifecycle rule deletes objects of the record",
			"gcloud storage buckets update gs://record --clear-lifecycle", false},
		"access by objects": {func(p *checkedProject) {
			p.Bucket["iamConfiguration"] = fields{
				"publicAccessPrevention": "enforced"}
		},
			"fail  bucket: uniform bucket-level access is off",
			"gcloud storage buckets update gs://record --uniform-bucket-level-access", false},
		"a retention policy": {func(p *checkedProject) {
			p.Bucket["retentionPolicy"] = fields{
				"retentionPeriod": "86400"}
		},
			"fail  deletion: the bucket has a retention policy of 1 day", "--clear-retention-period", false},
		"a hold": {func(p *checkedProject) { p.Bucket["defaultEventBasedHold"] = true },
			"fail  deletion: the bucket puts an event-based hold", "--no-default-event-based-hold", false},
		"requester pays": {func(p *checkedProject) { p.Bucket["billing"] = fields{"requesterPays": true} },
			"fail  bucket: requester pays is on", "--no-requester-pays", false},
		"no versions": {func(p *checkedProject) { delete(p.Bucket, "versioning") },
			"warn  deletion: the bucket keeps neither", "--versioning", true},
		"a bucket elsewhere": {func(p *checkedProject) { p.Bucket["location"] = "EUROPE-WEST1" },
			"warn  bucket: it is in europe-west1, and the masters are in us-central1", "", true},
		"masters may delete everything": {func(p *checkedProject) {
			p.BucketPolicy = []settings.Binding{{Role: "roles/storage.objectUser", Members: me}}
		}, "may delete every object of the bucket (roles/storage.objectUser", "gcloud storage buckets " +
			"remove-iam-policy-binding gs://record --member=serviceAccount:" + instance.MastersAccount() +
			" --role=roles/storage.objectUser --all", false},
		"masters may delete claims": {func(p *checkedProject) {
			p.BucketPolicy[1].Condition.Expression = `resource.name.startsWith("projects/_/buckets/record/objects/demo/")`
		}, `may delete below "demo/"`, "remove-iam-policy-binding", false},
		"marks cannot be overwritten": {func(p *checkedProject) { p.BucketPolicy = p.BucketPolicy[:1] },
			"may not delete, and so not overwrite, below demo/marks/",
			`expression=resource.name.startsWith("projects/_/buckets/record/objects/demo/marks/")`, false},
		"masters may not create": {func(p *checkedProject) {
			p.Roles["projects/quorate-local/roles/quorateRecord"] = []string{"storage.objects.list",
				"storage.objects.get"}
		}, "fail  permissions: storage.objects.create on bucket record",
			"--role=projects/quorate-local/roles/quorateRecord", false},
		"masters may not decrypt": {func(p *checkedProject) { p.KeyPolicy = nil },
			"cloudkms.cryptoKeyVersions.useToDecrypt, cloudkms.cryptoKeyVersions.useToEncrypt on the key",
			"gcloud kms keys add-iam-policy-binding demo --keyring=quorate --location=us-central1", false},
		"masters may not list VMs": {func(p *checkedProject) { p.ProjectPolicy = nil }, "compute.instances.list",
			"gcloud projects add-iam-policy-binding quorate-local", false},
		"the key's version is disabled": {func(p *checkedProject) { p.Key["primary"] = fields{"state": "DISABLED"} },
			"fail  key: its primary version is DISABLED", "gcloud kms keys versions enable 1 --key=demo", false},
		"the key signs": {func(p *checkedProject) { p.Key["purpose"] = "ASYMMETRIC_SIGN" },
			"fail  key: its purpose is ASYMMETRIC_SIGN", "gcloud kms keys create demo-seal", false},
		"no key": {func(p *checkedProject) { p.Key = nil }, "fail  key: it does not exist", "", false},
		"default scopes": {func(p *checkedProject) {
			p.shown(fields{"serviceAccounts": []any{fields{"email": instance.MastersAccount(),
				"scopes": []string{"https://www.googleapis.com/auth/devstorage.read_only"}}}})
		}, "lacks the scope cloud-platform (it has: devstorage.read_only)", gcloud + "set-service-account master-a " +
			"--zone=us-central1-a --service-account=" + instance.MastersAccount() + " --scopes=cloud-platform", false},
		"a Spot VM": {func(p *checkedProject) {
			p.shown(fields{"scheduling": fields{"provisioningModel": "SPOT", "preemptible": true,
				"onHostMaintenance": "TERMINATE",
				"automaticRestart":  false}})
		}, "fail  masters: us-central1-a.master-a is a Spot VM", gcloud + "delete master-a --zone=us-central1-a " +
			"--keep-disks=data", false},
		"stopped by maintenance, and stays off": {func(p *checkedProject) {
			p.shown(fields{"scheduling": fields{"provisioningModel": "STANDARD", "onHostMaintenance": "TERMINATE",
				"automaticRestart": false, "hostErrorTimeoutSeconds": 90}})
		}, "is not started again after its host fails", "set-scheduling master-a --zone=us-central1-a " +
			"--restart-on-failure",
			false},
		"no label": {func(p *checkedProject) { p.masters[0].Labels = nil },
			"has a Cluster document of demo, and not the label quorate-cluster=demo", gcloud +
				"add-labels master-a " +
				"--zone=us-central1-a --labels=quorate-cluster=demo", false},
		"another device name": {func(p *checkedProject) {
			p.shown(fields{"disks": []any{fields{"deviceName": "persistent-disk-1",
				"source": "zones/us-central1-a/disks/x"}}})
		}, "fail  disks: us-central1-a.master-a has no disk with the device name quorate-data",
			"attach-disk master-a --zone=us-central1-a --disk=DISK --device-name=quorate-data", false},
		"the data goes with the VM": {func(p *checkedProject) {
			p.shown(fields{"disks": []any{fields{"deviceName": "quorate-data", "autoDelete": true,
				"source": "https://www.googleapis.com/compute/v1/projects/x/zones/us-central1-a/disks/master-a-data"}}})
		}, "master-a-data is deleted together with its VM", "set-disk-auto-delete master-a --zone=us-central1-a " +
			"--no-auto-delete --disk=master-a-data", false},
		"a disk that several may write": {func(p *checkedProject) {
			p.masters[0].DataDisk.Shown = fields{"accessMode": "READ_WRITE_MANY"}
		}, "has the access mode READ_WRITE_MANY", "--access-mode=READ_WRITE_SINGLE", false},
		"a disk without label": {func(p *checkedProject) { p.masters[0].DataDisk.Shown = fields{"labels": fields{}} },
			"warn  disks: us-central1-a.master-a: master-a-data lacks the label",
			"gcloud compute disks add-labels master-a-data " +
				"--zone=us-central1-a --labels=quorate-cluster=demo", true},
		"health checks are refused": {func(p *checkedProject) {
			p.Firewalls[1]["sourceRanges"] = []string{
				"10.0.0.0/8"}
		},
			"fail  firewall: health checks do not reach the masters: 209.85.152.0/22 → master-a:443 (no rule)",
			"--source-ranges=209.85.152.0/22,209.85.204.0/22,35.191.0.0/16", false},
		"etcd is refused": {func(p *checkedProject) {
			p.Firewalls = append(p.Firewalls, fields{"name": "no-etcd", "network": p.Firewalls[0]["network"],
				"direction": "INGRESS", "priority": 900, "sourceRanges": []string{"10.128.0.12/32"},
				"denied": []any{fields{"IPProtocol": "tcp", "ports": []string{"2380"}}}})
		}, "master-b → master-a:2380 (no-etcd)", "--allow=tcp:2379-2380", false},
		"no way out": {func(p *checkedProject) { p.Subnetworks[0]["privateIpGoogleAccess"] = false },
			"fail  way out: subnetwork default has neither", "subnets update default --project=quorate-local " +
				"--region=us-central1 --enable-private-ip-google-access", false},
		"an address that is not reserved": {func(p *checkedProject) { p.Addresses = nil },
			"fail  endpoint: endpoint.externalIP 203.0.113.10 is not reserved in us-central1",
			"gcloud compute addresses create demo-api --project=quorate-local --region=us-central1 " +
				"--addresses=203.0.113.10", false},
		"two zones": {func(p *checkedProject) { p.masters = p.masters[:2] }, "warn  zones: 2 of us-central1 answer", "",
			true},
		"a start-up script for all": {func(p *checkedProject) {
			p.Project["commonInstanceMetadata"] = fields{"items": []any{fields{"key": "startup-script",
				"value": "#!/bin/sh"}}}
		}, "warn  metadata: the project has the attribute startup-script", "--keys=startup-script", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := wholeProject()
			c.set(p)
			code, out := p.check(t)
			if wantCode := map[bool]int{true: 0, false: 1}[c.warns]; code != wantCode {
				t.Errorf("exit code %d, want %d", code, wantCode)
			}
			if !strings.Contains(out, c.want) || !strings.Contains(out, c.mend) {
				t.Errorf("want %q, mended by %q:\n%s", c.want, c.mend, out)
			}
		})
	}
}

func TestCheckInJSON(t *testing.T) {
	p := wholeProject()
	p.Bucket["billing"] = fields{"requesterPays": true}
	code, out := p.check(t, "-o", "json")
	var findings []record.Finding // standard error's report of the code comes behind them
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&findings); err != nil || code != 1 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	for _, f := range findings {
		if f.Level == record.Fail && (f.What != "requester pays is on" || f.Why == "" || len(f.Mend) != 1) {
			t.Errorf("%+v", f)
		}
	}
}

func TestCheckRefusesAnotherRegion(t *testing.T) {
	if code, out := wholeProject().check(t, "--region", "us-east1"); code != exitUsage ||
		!strings.Contains(out, `region "us-east1", of --region or the document: the record of cluster demo is of us-central1`) {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A bucket that does not exist is a check that failed, as any other, whatever names the project: flags, the document or
// nobody. What else can be judged is.
func TestABucketThatDoesNotExistIsAFinding(t *testing.T) {
	const section = "gce: {project: quorate-local, region: us-central1, zones: [us-central1-a], " +
		"image: quorate-master, serviceAccount: m@quorate-local.iam.gserviceaccount.com}\n"
	const made = "gcloud storage buckets create gs://other --location=us-central1 --uniform-bucket-level-access " +
		"--public-access-prevention --project=quorate-local"
	for name, c := range map[string]struct {
		further string
		args    []string
		want    []string
	}{
		"nobody names the project": {"", nil, []string{"gcloud storage buckets create gs://other --location=REGION",
			"warn  project: nothing else was checked"}},
		"the document does": {section, nil, []string{made, "ok    key: "}},
		"flags do": {"", []string{"--project", "quorate-local", "--region", "us-central1"}, []string{made,
			"ok    key: "}},
	} {
		t.Run(name, func(t *testing.T) {
			p := wholeProject()
			p.bucket, p.further = "other", c.further
			code, out := p.check(t, c.args...)
			if code != exitFailure {
				t.Errorf("exit code %d", code)
			}
			for _, want := range append(c.want, "fail  bucket: it does not exist: ",
				"gcloud storage buckets update gs://other --versioning", "checks failed") {
				if !strings.Contains(out, want) {
					t.Errorf("nothing says %q:\n%s", want, out)
				}
			}
		})
	}
}

// A record that cannot be read for another reason is an error of its own as long as nobody names the project.
func TestARecordThatIsRefusedIsNoFinding(t *testing.T) {
	p := wholeProject()
	p.Disabled = []string{"storage.googleapis.com"}
	if code, out := p.check(t); code != exitRecord || !strings.Contains(out, "--project and --region are needed") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
