package controlplane

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

var update = flag.Bool("update", false, "write the golden files anew")

// representative is a replica of a cluster in which everything is configured that changes a command line.
func representative() Input {
	c := &replica.Cluster{
		Name:     "prod",
		Endpoint: replica.Endpoint{ExternalIP: "203.0.113.10"},
		Addons:   replica.Addons{Folder: "/etc/quorate/addons"},
		Components: map[string]replica.Component{
			replica.Autoscaler: {Enabled: new(true),
				ExtraArgs: []string{"--nodes=1:10:https://www.googleapis.com/compute/v1/projects/p/" +
					"zones/us-central1-a/instanceGroups/nodes"}},
			replica.Scheduler: {Binary: "/opt/kubernetes/kube-scheduler", ExtraArgs: []string{"--v=4"},
				Env: map[string]string{"GOMAXPROCS": "2", "GODEBUG": "madvdontneed=1"}},
			"cloud-controller-manager": {
				Binary: "/opt/gcp/cloud-controller-manager", ExtraArgs: []string{"--cloud-provider=gce", "-v", "2"},
				Probe: &replica.Probe{URL: "https://127.0.0.1:10258/healthz"},
			},
			"konnectivity-server": {Enabled: new(false), Binary: "/opt/konnectivity-server"},
		},
	}
	c.SetDefaults()
	return Input{
		Identity: replica.Identity{
			Place:     replica.Place{Zone: "us-central1-b", Name: "master-2"},
			Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.12"), netip.MustParseAddr("fd00::12")},
		},
		Cluster:   c,
		Files:     certs.Files{Dir: "/data/pki", Volatile: "/run/quorate/pki"},
		OtherEtcd: []string{"https://master-1.us-central1-a.prod.quorate.internal:2379"},
		Signing:   true,
		Self:      "/usr/local/bin/quorate",
		LogDir:    "/var/log/quorate",
		RunDir:    "/run/quorate",
	}
}

func TestTheExamplesOfADocumentAreTheAddonsFolder(t *testing.T) {
	in := representative()
	in.Cluster.Addons = replica.Addons{Examples: []string{replica.MetadataGuard, replica.CoreDNS}, Version: 3}
	specs, files, err := Components(in)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(specs, func(s supervisor.Spec) bool { return s.Name == replica.AddonManager })
	if i < 0 || !slices.Contains(specs[i].Args, "--folder=/run/quorate/examples") {
		t.Errorf("the add-on manager is %d of %+v", i, specs)
	}
	written := map[string]string{}
	for _, f := range files {
		written[f.Path] = string(f.Data)
		if f.Public != strings.HasPrefix(f.Path, "/run/quorate/examples/") {
			t.Errorf("everybody may read %s: %t", f.Path, f.Public)
		}
	}
	if !strings.HasPrefix(written["/run/quorate/examples/version"], "3.") ||
		!strings.Contains(written["/run/quorate/examples/examples.yaml"], "name: metadata-guard") ||
		!strings.Contains(written["/run/quorate/examples/examples.yaml"], "name: coredns") ||
		strings.Contains(written["/run/quorate/examples/examples.yaml"], "name: kube-proxy") {
		t.Errorf("written: %q", written)
	}
	in.Cluster.Addons = replica.Addons{}
	if specs, _, err = Components(in); err != nil || slices.ContainsFunc(specs,
		func(s supervisor.Spec) bool { return s.Name == replica.AddonManager }) {
		t.Errorf("a manager without add-ons, %v", err)
	}
}

// TestCommandLines compares whole command lines: a flag that changes for every replica in production is to be seen in
// review.
func TestCommandLines(t *testing.T) {
	bare := representative()
	bare.OtherEtcd, bare.Signing = nil, false
	bare.Cluster = &replica.Cluster{
		Name: "v6", Endpoint: replica.Endpoint{InternalIP: "fd00::1", Port: 6443}, Election: replica.ElectionSlow,
		Network: replica.Network{ServiceCIDRs: []string{"fd10::/108", "10.96.0.0/16"}, PodCIDR: "fd20::/48",
			DNSDomain: "v6.example"},
		EncryptionAtRest: new(false), AuditPolicy: "/etc/quorate/audit.yaml",
		Components: map[string]replica.Component{replica.Scheduler: {Enabled: new(false)}},
	}
	bare.Cluster.SetDefaults()
	for name, in := range map[string]Input{"representative": representative(), "bare": bare} {
		t.Run(name, func(t *testing.T) {
			specs, files, err := Components(in)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".golden", describe(specs, files))
		})
	}
}

// describe spells out all of a Spec but its functions, and the paths of the files.
func describe(specs []supervisor.Spec, files []File) string {
	var b strings.Builder
	for _, s := range specs {
		fmt.Fprintf(&b, "== %s\n%s\n", s.Name, s.Path)
		for _, a := range s.Args {
			fmt.Fprintf(&b, "  %s\n", a)
		}
		fmt.Fprintf(&b, "env %q after %q stop %s oom score +%d nice +%d expects exits %t\n",
			s.Env, s.After, s.StopTimeout, s.OOMScore, s.Nice, s.ExpectedExit != nil)
		for _, p := range []struct {
			name  string
			probe *supervisor.Probe
		}{{"start", s.Start}, {"live", s.Live}, {"ready", s.Ready}} {
			if p.probe != nil {
				retry := ""
				if p.probe.Retry != 0 {
					retry = fmt.Sprintf(" (%s while it fails)", p.probe.Retry)
				}
				fmt.Fprintf(&b, "%s every %s%s within %s, fails after %s\n", p.name, p.probe.Period, retry,
					p.probe.Timeout, p.probe.Limit)
			}
		}
		b.WriteString("\n")
	}
	for _, f := range files {
		fmt.Fprintf(&b, "file %s\n", f.Path)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

func TestComponentsRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"a replica without an address of the services' family": {
			func(in *Input) { in.Identity.Addresses = in.Identity.Addresses[1:] },
			"network.serviceCIDRs[0] is 10.96.0.0/12, but us-central1-b.master-2 has no address of that family (it " +
				"has [fd00::12])",
		},
		"a service range that is none": {
			func(in *Input) { in.Cluster.Network.ServiceCIDRs = []string{"10.96.0.0"} },
			`network.serviceCIDRs[0]: netip.ParsePrefix("10.96.0.0"): no '/'`,
		},
		"a configuration that was not defaulted": {
			func(in *Input) { in.Cluster = &replica.Cluster{} },
			"network.serviceCIDRs is empty: the configuration has not been defaulted",
		},
		"an extra argument that is quorate's": {
			func(in *Input) {
				in.Cluster.Components[replica.APIServer] = replica.Component{
					ExtraArgs: []string{"--etcd-servers=http://elsewhere"}}
			},
			`components.kube-apiserver.extraArgs[0]: found "--etcd-servers=http://elsewhere"; ` +
				`allowed: any flag but --etcd-servers, which is quorate's: the apiserver's data must be ` +
				`the replica's own member's, whole and under the prefix that it was written with`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := representative()
			tc.change(&in)
			_, _, err := Components(in)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestEtcdServers(t *testing.T) {
	for name, tc := range map[string]struct {
		others []string
		want   string
	}{
		"alone":              {nil, localEtcd},
		"one other":          {[]string{"a"}, localEtcd + ",a"},
		"at most two others": {[]string{"a", "b", "c"}, localEtcd + ",a,b"},
	} {
		in := representative()
		in.OtherEtcd = tc.others
		if got := value(in.etcdFlags(), "etcd-servers"); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

// TestComponentsIsPure: a caller compares two results to know whether a process has to be restarted, and keeps its
// input.
func TestComponentsIsPure(t *testing.T) {
	in := representative()
	first, _, err := Components(in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		first[i].Args[0] = "changed"
	}
	second, _, _ := Components(in)
	third, _, _ := Components(representative())
	if diff := cmp.Diff(describe(third, nil), describe(second, nil)); diff != "" {
		t.Errorf("the result depends on what was done with an earlier one:\n%s", diff)
	}
}

func TestLeases(t *testing.T) {
	in := representative()
	in.Cluster.Components[replica.Scheduler] = replica.Component{Enabled: new(false)}
	var got []string
	for _, l := range Leases(in.Cluster) {
		got = append(got, l.Namespace+"/"+l.Name)
	}
	if want := []string{"kube-system/kube-controller-manager", "kube-system/cluster-autoscaler"}; !slices.Equal(got,
		want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLostLeaseIsExpected(t *testing.T) {
	for _, tc := range []struct {
		name string
		code int
		tail string
		want bool
	}{
		{"kube-controller-manager lost its lease", 1,
			`E1120 22:00:00 1 controllermanager.go:413] "leaderelection lost/stopped"`, true},
		{"kube-scheduler lost its lease", 1, `E1120 22:00:00 1 server.go:328] "Leaderelection lost"`, true},
		{"kube-scheduler gave its lease up", 1, "Error: lost lease", true},
		{"cluster-autoscaler lost its lease", 255, "F1120 22:00:00 1 main.go:700] lost master", true},
		{"a bad flag", 1, "Error: unknown flag: --leader", false},
		{"killed while losing its lease", -1, `"leaderelection lost/stopped"`, false},
		{"another exit of cluster-autoscaler", 255, "F1120 no cloud provider", false},
	} {
		if got := lostLease(tc.code, tc.tail); got != tc.want {
			t.Errorf("%s: got %t", tc.name, got)
		}
	}
}

// value is the value of a flag, "" without it.
func value(f flags, name string) string {
	for _, x := range f {
		if x.name == name {
			return x.value
		}
	}
	return ""
}

func TestResourcesAreLimitsOfTheProcess(t *testing.T) {
	in := representative()
	c := in.Cluster.Components[replica.Scheduler]
	c.Resources = replica.Resources{MemoryMaxBytes: 3, MemoryHighBytes: 2, CPUWeight: 1}
	in.Cluster.Components[replica.Scheduler] = c
	specs, _, err := Components(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range specs {
		want := supervisor.Limits{}
		if s.Name == replica.Scheduler {
			want = supervisor.Limits{MemoryMax: 3, MemoryHigh: 2, CPUWeight: 1}
		}
		if s.Limits != want {
			t.Errorf("%s: %+v, want %+v", s.Name, s.Limits, want)
		}
	}
}
