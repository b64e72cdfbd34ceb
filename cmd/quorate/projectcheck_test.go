package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/fleet/show"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// lacking is what of a project's fields is not there.
func lacking(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

// Before anything is made, what is red is named with the command that mends it.
func TestNothingIsMadeInAProjectThatIsNotReady(t *testing.T) {
	me := "--member=serviceAccount:" + instance.MastersAccount()
	const record = "projects/quorate-local/roles/quorateRecord"
	for name, c := range map[string]struct {
		masters      int
		args, more   string // more is in the document's section gce
		set          func(p *checkedProject)
		want, mended string
	}{
		"the service account": {0, "create", "", func(p *checkedProject) { p.Accounts = nil },
			"fail  permissions: service account " + instance.MastersAccount() + " does not exist",
			"gcloud iam service-accounts create 271828182845-compute --project="},
		"a role of the masters": {0, "create", "", func(p *checkedProject) { delete(p.Roles, record) },
			"fail  permissions: storage.objects.list, storage.objects.get, storage.objects.create on bucket record",
			"gcloud iam roles create quorateRecord --project=quorate-local --permissions=storage.objects.list,"},
		"a permission of a role": {0, "create", "", func(p *checkedProject) {
			p.Roles[record] = lacking(p.Roles[record], "storage.objects.create")
		}, "fail  permissions: storage.objects.create on bucket record",
			"gcloud iam roles update quorateRecord --project=quorate-local --add-permissions=storage.objects.create"},
		"the masters' right to attach themselves": {0, "create", "loadBalancer: {type: external}",
			func(p *checkedProject) { p.ProjectPolicy = p.ProjectPolicy[:1] },
			"fail  permissions: compute.networkEndpointGroups.get", me + " --role=projects/quorate-local/roles/quorateEndpoint"},
		"the operator's right to make VMs": {0, "create", "",
			func(p *checkedProject) { p.Lacking = []string{"compute.instances.create"} },
			"fail  operator: who runs this lacks on project quorate-local: compute.instances.create", "--role=ROLE"},
		"the operator's right to make rules": {0, "create", "firewall: {apiSources: [10.0.0.0/8]}",
			func(p *checkedProject) { p.Lacking = []string{"compute.firewalls.create"} },
			"fail  operator: who runs this lacks on project quorate-local: compute.firewalls.create", "--role=ROLE"},
		"the operator's right to act as the masters": {3, "add", "",
			func(p *checkedProject) { p.Lacking = []string{"iam.serviceAccounts.actAs"} },
			"fail  operator: who runs this lacks on service account", "--role=roles/iam.serviceAccountUser"},
		"the operator's right to write the record": {0, "create", "",
			func(p *checkedProject) { p.Lacking = []string{"storage.objects.create"} },
			"fail  operator: who runs this lacks on bucket record: storage.objects.create", "gs://record"},
		"a key": {0, "create", "", func(p *checkedProject) { p.Key = nil }, "fail  key: it does not exist", ""},
		"an address": {0, "create", "", func(p *checkedProject) { p.Addresses = nil },
			"fail  endpoint: endpoint.externalIP 203.0.113.10 is not reserved", "gcloud compute addresses create demo-api"},
		"a subnetwork": {0, "create", "", func(p *checkedProject) { p.Subnetworks = nil },
			"fail  network: network default has no subnetwork", "gcloud compute networks subnets list"},
		"a zone": {0, "create --zone us-central1-z", "", func(*checkedProject) {},
			"fail  zones: us-central1-z is no zone of us-central1", "gcloud compute zones list"},
		"rules for etcd, which this document has nobody make": {0, "create", "",
			func(p *checkedProject) { p.Firewalls = p.Firewalls[1:] },
			"fail  firewall: the masters do not reach one another's etcd: new-master", "gcloud compute firewall-rules create"},
		"rules, which add does not make": {3, "add", "firewall: {apiSources: [10.0.0.0/8]}",
			func(p *checkedProject) { p.Firewalls = nil }, "fail  firewall: ", "gcloud compute firewall-rules create"},
		"a way out": {0, "create", "",
			func(p *checkedProject) { p.Subnetworks[0]["privateIpGoogleAccess"] = false },
			"fail  way out: subnetwork default has neither", "--enable-private-ip-google-access"},
		"a master that is no Spot VM": {3, "add", "", func(p *checkedProject) {
			p.shown(fields{"scheduling": fields{"provisioningModel": "SPOT", "preemptible": true}})
		}, "fail  masters: us-central1-a.master-a is a Spot VM", "gcloud compute instances delete master-a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := wholeProject()
			c.set(all)
			p := serveFleetIn(t, all, c.masters)
			p.addToSection(c.more)
			for _, mode := range []string{"--yes", "--dry-run"} {
				out, errs := p.quorate(exitRefused, append(strings.Fields(c.args), mode)...)
				if !strings.Contains(out, c.want) || !strings.Contains(out, c.mended) ||
					!strings.Contains(errs, "so nothing was made") || strings.Contains(out, "ok    ") {
					t.Errorf("want %q, mended by %q:\n%s%s", c.want, c.mended, out, errs)
				}
			}
			if out, _ := p.quorate(exitOK, append(strings.Fields(c.args), "--dry-run", "--skip-checks")...); !strings.Contains(
				out, "1. ") || strings.Contains(out, "fail  ") {
				t.Errorf("without checks:\n%s", out)
			}
		})
	}
}

// addToSection adds a line to the document's section gce, which is its last.
func (p *fleetProject) addToSection(line string) {
	text, err := os.ReadFile(p.document)
	p.must(err)
	if line != "" {
		p.must(os.WriteFile(p.document, append(text, "  "+line+"\n"...), 0o600))
	}
}

// What `quorate create` makes by itself need not be there, and a warning stops nobody.
func TestWhatIsMadeNeedNotBeThere(t *testing.T) {
	all := wholeProject()
	all.Firewalls, all.Lacking = nil, []string{"compute.subnetworks.use"}
	p := serveFleetIn(t, all, 0)
	p.addToSection("firewall: {apiSources: [10.0.0.0/8]}")
	out, _ := p.quorate(exitOK, "create", "--dry-run")
	for _, want := range []string{"warn  operator: who runs this lacks on project quorate-local, unless the image or " +
		"the network gives it: compute.subnetworks.use", "Make firewall rule demo-masters", "Nothing was changed."} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

func TestChecksInJSON(t *testing.T) {
	all := wholeProject()
	all.Addresses = nil
	p := serveFleetIn(t, all, 0)
	out, errs := p.quorate(exitRefused, "create", "--yes", "-o", "json")
	var a show.Answer
	if err := json.Unmarshal([]byte(out), &a); err != nil || a.Done || len(a.Checks) != 1 ||
		a.Checks[0].Subject != "endpoint" || !strings.Contains(errs, `"exitCode": 13`) && !strings.Contains(errs, "13") {
		t.Errorf("%v: %s%s", err, out, errs)
	}
}

// Of a document that says how masters are made, `gce check` judges those, and asks for no flag.
func TestTheCheckTakesTheDocumentsSection(t *testing.T) {
	all := wholeProject()
	all.Firewalls = nil
	p := serveFleetIn(t, all, 0)
	out, _ := p.quorate(exitFailure, "gce", "check")
	for _, want := range []string{"warn  record: it has not begun", "ok    masters: none is there yet",
		"fail  firewall: the masters do not reach one another's etcd", "ok    permissions: " + instance.MastersAccount()} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}
