package replica_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

// withGCE is a valid document that says how VMs are made, with the least that it can say.
func withGCE() *replica.Cluster {
	c := valid()
	c.GCE = &replica.GCE{Project: "example", Region: "us-central1", Zones: []string{"us-central1-a", "us-central1-b"},
		Image: "quorate-master", ServiceAccount: "prod-1-master@example.iam.gserviceaccount.com"}
	c.SetDefaults()
	return c
}

func TestWhatVMsAreMadeOfHasDefaults(t *testing.T) {
	c := withGCE()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	g := c.GCE
	if g.MachineType != "e2-standard-4" || g.Network != "default" || g.Subnetwork != "" ||
		g.BootDisk != (replica.GCEDisk{Type: "pd-balanced", SizeGB: 20}) ||
		g.DataDisk != (replica.GCEDisk{Type: "pd-ssd", SizeGB: 50}) {
		t.Errorf("the defaults are %+v", g)
	}
	if got := g.ImagePath(); got != "projects/example/global/images/quorate-master" {
		t.Errorf("the image is %s", got)
	}
	if got := g.NetworkPath(); got != "projects/example/global/networks/default" {
		t.Errorf("the network is %s", got)
	}
	if got := g.SubnetworkPath(); got != "" {
		t.Errorf("the subnetwork is %s", got)
	}
	if got := c.LoadBalancer(); g.LoadBalancer.Type != replica.NoBalancer || got != (replica.LoadBalancer{}) {
		t.Errorf("the load balancer is %+v, which quorate touches as %+v", g.LoadBalancer, got)
	}
	if valid().GCE != nil {
		t.Error("a document without the section gets one")
	}
}

// A load balancer has the cluster's name, or its own. Without a section for VMs there is none.
func TestWhichLoadBalancerTheMastersAreBehind(t *testing.T) {
	for _, tc := range []struct {
		name           string
		document, want replica.LoadBalancer
	}{
		{"nothing is said", replica.LoadBalancer{}, replica.LoadBalancer{}},
		{"none, with a name", replica.LoadBalancer{Type: "none", Name: "lb"}, replica.LoadBalancer{}},
		{"an external one", replica.LoadBalancer{Type: "external"}, replica.LoadBalancer{Type: "external", Name: "demo"}},
		{"an internal one with a name", replica.LoadBalancer{Type: "internal", Name: "lb"},
			replica.LoadBalancer{Type: "internal", Name: "lb"}},
		{"an external one on demand", replica.LoadBalancer{Type: "external", OnDemand: true},
			replica.LoadBalancer{Type: "external", Name: "demo", OnDemand: true}},
	} {
		c := withGCE()
		c.GCE.LoadBalancer, c.Endpoint.InternalIP = tc.document, "10.128.0.99"
		c.GCE.Firewall.APISources = []string{"10.128.0.0/20", "192.0.2.7/32"}
		c.SetDefaults()
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := c.LoadBalancer(); got != tc.want {
			t.Errorf("%s: it is %+v, want %+v", tc.name, got, tc.want)
		}
	}
	if got := valid().LoadBalancer(); got != (replica.LoadBalancer{}) {
		t.Errorf("without the section it is %+v", got)
	}
}

func TestOtherSpellingsOfWhatVMsAreMadeOf(t *testing.T) {
	for _, tc := range []struct {
		name                 string
		change               func(*replica.GCE)
		image, network, subs string // where they differ from the rest
	}{
		{"an image family", func(g *replica.GCE) { g.Image = "family/masters" },
			"projects/example/global/images/family/masters", "", ""},
		{"another project's image", func(g *replica.GCE) { g.Image = "projects/images-1/global/images/m" },
			"projects/images-1/global/images/m", "", ""},
		{"another project's image family", func(g *replica.GCE) { g.Image = "projects/im/global/images/family/m" },
			"projects/im/global/images/family/m", "", ""},
		{"a shared VPC", func(g *replica.GCE) {
			g.Network = "projects/host-1/global/networks/shared"
			g.Subnetwork = "projects/host-1/regions/us-central1/subnetworks/masters"
		}, "", "projects/host-1/global/networks/shared", "projects/host-1/regions/us-central1/subnetworks/masters"},
		{"a subnetwork by its name", func(g *replica.GCE) { g.Subnetwork = "masters" }, "", "",
			"projects/example/regions/us-central1/subnetworks/masters"},
		{"a project of a domain", func(g *replica.GCE) { g.Project = "example.com:prod-1" },
			"projects/example.com:prod-1/global/images/quorate-master",
			"projects/example.com:prod-1/global/networks/default", ""},
		{"tags, labels and a machine type of one's own", func(g *replica.GCE) {
			g.Tags, g.Labels, g.MachineType = []string{"masters"}, map[string]string{"team": "infra", "e": ""},
				"n2-custom-4-8192"
		}, "", "", ""},
	} {
		c := withGCE()
		tc.change(c.GCE)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		for got, want := range map[string]string{c.GCE.ImagePath(): tc.image, c.GCE.NetworkPath(): tc.network,
			c.GCE.SubnetworkPath(): tc.subs} {
			if want != "" && got != want {
				t.Errorf("%s: got %s, want %s", tc.name, got, want)
			}
		}
	}
}

// Each case breaks one thing; want is the field that must be named, and only it.
func TestWhatVMsCannotBeMadeOf(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		change     func(*replica.GCE)
	}{
		{"no project", "gce.project", func(g *replica.GCE) { g.Project = "" }},
		{"a project's number", "gce.project", func(g *replica.GCE) { g.Project = "123456789012" }},
		{"a project with a path", "gce.project", func(g *replica.GCE) { g.Project = "projects/example" }},
		{"no zones", "gce.zones", func(g *replica.GCE) { g.Zones = nil }},
		{"a zone of another region", "gce.zones[1]", func(g *replica.GCE) { g.Zones[1] = "europe-west1-b" }},
		{"a region as a zone", "gce.zones[0]", func(g *replica.GCE) { g.Zones[0] = "us-central1" }},
		{"a zone twice", "gce.zones[1]", func(g *replica.GCE) { g.Zones[1] = "us-central1-a" }},
		{"a machine type as a URL", "gce.machineType",
			func(g *replica.GCE) { g.MachineType = "zones/a/machineTypes/x" }},
		{"no image", "gce.image", func(g *replica.GCE) { g.Image = "" }},
		{"an image as a URL", "gce.image", func(g *replica.GCE) { g.Image = "https://compute.googleapis.com/x" }},
		{"a network with a path", "gce.network", func(g *replica.GCE) { g.Network = "global/networks/default" }},
		{"a subnetwork of another region", "gce.subnetwork",
			func(g *replica.GCE) { g.Subnetwork = "projects/p/regions/europe-west1/subnetworks/s" }},
		{"no service account", "gce.serviceAccount", func(g *replica.GCE) { g.ServiceAccount = "" }},
		{"a service account without its project", "gce.serviceAccount",
			func(g *replica.GCE) { g.ServiceAccount = "m" }},
		{"a person's account", "gce.serviceAccount", func(g *replica.GCE) { g.ServiceAccount = "me@example.com" }},
		{"a local SSD for the data", "gce.dataDisk.type", func(g *replica.GCE) { g.DataDisk.Type = "local-ssd" }},
		{"a small boot disk", "gce.bootDisk.sizeGB", func(g *replica.GCE) { g.BootDisk.SizeGB = 9 }},
		{"a huge data disk", "gce.dataDisk.sizeGB", func(g *replica.GCE) { g.DataDisk.SizeGB = 65537 }},
		{"no room for three databases", "gce.dataDisk.sizeGB", func(g *replica.GCE) { g.DataDisk.SizeGB = 24 }},
		{"a tag with a blank", "gce.tags[0]", func(g *replica.GCE) { g.Tags = []string{"a b"} }},
		{"a tag twice", "gce.tags[1]", func(g *replica.GCE) { g.Tags = []string{"a", "a"} }},
		{"too many tags", "gce.tags", func(g *replica.GCE) {
			for n := range 65 {
				g.Tags = append(g.Tags, "t"+strings.Repeat("a", n))
			}
			g.Tags = g.Tags[:65]
			g.Tags[63], g.Tags[64] = "x", "y"
		}},
		{"quorate's own label", "gce.labels.quorate-cluster",
			func(g *replica.GCE) { g.Labels = map[string]string{"quorate-cluster": "other"} }},
		{"an unknown load balancer", "gce.loadBalancer.type", func(g *replica.GCE) { g.LoadBalancer.Type = "global" }},
		{"a load balancer's name in capitals", "gce.loadBalancer.name",
			func(g *replica.GCE) { g.LoadBalancer = replica.LoadBalancer{Type: "external", Name: "LB"} }},
		{"an internal load balancer on demand, and without an address", "gce.loadBalancer.type gce.loadBalancer.onDemand",
			func(g *replica.GCE) { g.LoadBalancer = replica.LoadBalancer{Type: "internal", OnDemand: true} }},
		{"no load balancer, on demand", "gce.loadBalancer.onDemand",
			func(g *replica.GCE) { g.LoadBalancer = replica.LoadBalancer{Type: "none", OnDemand: true} }},
		{"an internal load balancer without an address", "gce.loadBalancer.type",
			func(g *replica.GCE) { g.LoadBalancer.Type = "internal" }},
		{"an address for a range", "gce.firewall.apiSources[0]",
			func(g *replica.GCE) { g.Firewall.APISources = []string{"10.128.0.1"} }},
		{"a range that reads like another", "gce.firewall.apiSources[0]",
			func(g *replica.GCE) { g.Firewall.APISources = []string{"10.128.0.1/20"} }},
		{"a range twice", "gce.firewall.apiSources[1]",
			func(g *replica.GCE) { g.Firewall.APISources = []string{"10.0.0.0/8", "10.0.0.0/8"} }},
		{"a label in capitals", "gce.labels.Team", func(g *replica.GCE) { g.Labels = map[string]string{"Team": "x"} }},
		{"a label's value in capitals", "gce.labels.team",
			func(g *replica.GCE) { g.Labels = map[string]string{"team": "X"} }},
	} {
		c := withGCE()
		tc.change(c.GCE)
		if got := faultFields(c.Validate()); got != tc.want {
			t.Errorf("%s: names %q, want %q (%v)", tc.name, got, tc.want, c.Validate())
		}
	}
}

// faultFields are the fields that a validation names.
func faultFields(err error) string {
	faults, _ := err.(replica.Faults)
	var fields []string
	for _, f := range faults {
		fields = append(fields, f.Field)
	}
	return strings.Join(fields, " ")
}

func TestEachFaultOfTheSectionIsNamedWithItsLine(t *testing.T) {
	_, err := replica.Load(replica.Source{Name: "a.yaml", Data: []byte(string(readExample(t)) + `gce:
  project: example
  region: us-central1
  zone: us-central1-a
  machinetype: n2-standard-4
  image: quorate-master
  serviceAccount: root
  dataDisk: {sizeGB: 0}
  loadBalancer: {type: global, endpointGroup: x}
`)})
	for _, want := range []string{
		"gce.zone: found an unknown field (did you mean gce.zones?)",
		"gce.machinetype: found an unknown field (did you mean gce.machineType?)",
		`gce.serviceAccount: found "root"; allowed: the email of a service account`,
		`gce.dataDisk.sizeGB: found "0"; allowed: a whole number above 0; leave the field out to take the default`,
		`gce.loadBalancer.type: found "global"; allowed: external, internal, none`,
		"gce.loadBalancer.endpointGroup: found an unknown field",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "a.yaml: line ") {
			t.Errorf("no line is named: %s", line)
		}
	}
}

func TestShowingTheSectionChangesNothing(t *testing.T) {
	c := withGCE()
	c.GCE.MachineType = ""
	if _, err := c.Show(); err != nil || c.GCE.MachineType != "" {
		t.Errorf("showing set the machine type to %q (%v)", c.GCE.MachineType, err)
	}
}
