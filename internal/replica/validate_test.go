package replica_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// valid is the smallest document that is complete, defaulted.
func valid() *replica.Cluster {
	c := &replica.Cluster{
		APIVersion: replica.APIVersion, Kind: replica.Kind, Name: "demo",
		Endpoint: replica.Endpoint{ExternalIP: "203.0.113.10"},
		Record:   replica.Record{URL: "gs://record?endpoint=http://192.0.2.1"},
		Seal:     replica.Seal{Key: "base64key://" + secret},
	}
	c.SetDefaults()
	return c
}

// secret is 32 bytes in URL-safe base64; no error and no output may hold it.
const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTAxMjM="

func TestSmallestDocumentIsValid(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestDefaultsAreThoseOfTheComments(t *testing.T) {
	c := valid()
	got := fmt.Sprintf("%v %v %v %v %v %v", c.Endpoint.Port, c.Replicas, c.Network, c.Etcd, c.Election,
		*c.EncryptionAtRest)
	want := "443 3 {[10.96.0.0/12] 10.244.0.0/16 cluster.local} {/var/lib/quorate  8589934592 100ms 1s 75000 {1h0m0s " +
		"168h0m0s 2160h0m0s}} fast true"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for name, enabled := range map[string]bool{"kube-apiserver": true, "kube-controller-manager": true,
		"kube-scheduler": true, "cluster-autoscaler": false} {
		k := c.Components[name]
		if *k.Enabled != enabled || k.Binary != "/usr/local/bin/"+name || k.Elect != "self" {
			t.Errorf("%s got %+v (enabled %v)", name, k, *k.Enabled)
		}
	}
}

func TestElectionProfiles(t *testing.T) {
	c := valid()
	if got, want := c.ElectionTimes(), (replica.ElectionTimes{LeaseDuration: 9 * time.Second,
		RenewDeadline: 3 * time.Second, RetryPeriod: time.Second}); got != want {
		t.Errorf("fast is %+v", got)
	}
	c.Election = "slow"
	if got, want := c.ElectionTimes(), (replica.ElectionTimes{LeaseDuration: 15 * time.Second,
		RenewDeadline: 5 * time.Second, RetryPeriod: 2 * time.Second}); got != want {
		t.Errorf("slow is %+v", got)
	}
}

// Who is cut off from the others has ended its work before one of them begins.
func TestALeaderThatIsCutOffEndsBeforeItsLease(t *testing.T) {
	for _, profile := range []string{replica.ElectionFast, replica.ElectionSlow} {
		c := valid()
		c.Election = profile
		times := c.ElectionTimes()
		if on := times.WorksOn(times.RenewDeadline / 2); on >= times.LeaseDuration { // a request's limit in client-go
			t.Errorf("%s: works on for %s, and the lease lasts %s", profile, on, times.LeaseDuration)
		}
		times = times.WithoutTimeLimit()
		if on := times.WorksOn(times.RenewDeadline); on >= times.LeaseDuration {
			t.Errorf("%s without a limit: works on for %s, and the lease lasts %s", profile, on, times.LeaseDuration)
		}
	}
}

// Each case breaks one thing of a valid document; want is the field that must be named, and only it.
func TestValidateRefuses(t *testing.T) {
	long := strings.Repeat("a", 64)
	component := func(c *replica.Cluster, name string, change func(*replica.Component)) {
		k := c.Components[name]
		k.Enabled, k.Elect = new(true), "self"
		change(&k)
		c.Components[name] = k
	}
	further := func(c *replica.Cluster, change func(*replica.Component)) {
		component(c, "ccm", func(k *replica.Component) {
			k.Binary, k.Probe = "/usr/bin/ccm", &replica.Probe{URL: "https://127.0.0.1:10258/healthz"}
			change(k)
		})
	}
	for _, tc := range []struct {
		name, want string
		change     func(*replica.Cluster)
	}{
		{"a wrong version", "apiVersion", func(c *replica.Cluster) { c.APIVersion = "v1" }},
		{"a wrong kind", "kind", func(c *replica.Cluster) { c.Kind = "Clusters" }},
		{"no name", "name", func(c *replica.Cluster) { c.Name = "" }},
		{"a name with a dot", "name", func(c *replica.Cluster) { c.Name = "a.b" }},
		{"a name with a line break", "name", func(c *replica.Cluster) { c.Name = "a\nb" }},
		{"a name too long", "name", func(c *replica.Cluster) { c.Name = long }},
		{"no endpoint", "endpoint", func(c *replica.Cluster) { c.Endpoint.ExternalIP = "" }},
		{"an endpoint of names alone", "endpoint", func(c *replica.Cluster) {
			c.Endpoint.ExternalIP, c.Endpoint.DNSNames = "", []string{"api.example.com"}
		}},
		{"an address that is reserved", "endpoint.externalIP",
			func(c *replica.Cluster) { c.Endpoint.ExternalIP = "255.255.255.255" }},
		{"an address of this network", "endpoint.externalIP",
			func(c *replica.Cluster) { c.Endpoint.ExternalIP = "0.0.0.7" }},
		{"an address that is a name", "endpoint.externalIP",
			func(c *replica.Cluster) { c.Endpoint.ExternalIP = "api.example.com" }},
		{"a loopback address", "endpoint.externalIP", func(c *replica.Cluster) { c.Endpoint.ExternalIP = "127.0.0.1" }},
		{"the metadata server's address", "endpoint.internalIP",
			func(c *replica.Cluster) { c.Endpoint.InternalIP = "169.254.169.254" }},
		{"the unspecified address", "endpoint.internalIP", func(c *replica.Cluster) { c.Endpoint.InternalIP = "::" }},
		{"an address with a zone", "endpoint.internalIP",
			func(c *replica.Cluster) { c.Endpoint.InternalIP = "fd00::1%eth0" }},
		{"IPv4 in IPv6", "endpoint.internalIP", func(c *replica.Cluster) { c.Endpoint.InternalIP = "::ffff:10.0.0.1" }},
		{"a wildcard name", "endpoint.dnsNames[0]",
			func(c *replica.Cluster) { c.Endpoint.DNSNames = []string{"*.example.com"} }},
		{"an address as a name", "endpoint.dnsNames[0]",
			func(c *replica.Cluster) { c.Endpoint.DNSNames = []string{"203.0.113.9"} }},
		{"a name that ends in digits", "endpoint.dnsNames[1]",
			func(c *replica.Cluster) { c.Endpoint.DNSNames = []string{"api.x", "api.42"} }},
		{"a name of 254 bytes", "endpoint.dnsNames[0]",
			func(c *replica.Cluster) { c.Endpoint.DNSNames = []string{nameOf(254)} }},
		{"a port below", "endpoint.port", func(c *replica.Cluster) { c.Endpoint.Port = -1 }},
		{"a port above", "endpoint.port", func(c *replica.Cluster) { c.Endpoint.Port = 65536 }},
		{"etcd's port", "endpoint.port", func(c *replica.Cluster) { c.Endpoint.Port = 2380 }},
		{"sshd's port", "endpoint.port", func(c *replica.Cluster) { c.Endpoint.Port = 22 }},
		{"the port of etcd's metrics", "endpoint.port", func(c *replica.Cluster) { c.Endpoint.Port = 2381 }},
		{"the port of etcd's HTTP paths", "endpoint.port", func(c *replica.Cluster) { c.Endpoint.Port = 2382 }},
		{"the autoscaler's port", "endpoint.port", func(c *replica.Cluster) { c.Endpoint.Port = 8085 }},
		{"the port of the kubelet's health", "endpoint.port", func(c *replica.Cluster) { c.Endpoint.Port = 10248 }},
		{"the port of kube-proxy's health", "endpoint.port", func(c *replica.Cluster) { c.Endpoint.Port = 10256 }},
		{"the port of the agent's metrics", "endpoint.port", func(c *replica.Cluster) { c.Endpoint.Port = 10270 }},
		{"no record", "record.url", func(c *replica.Cluster) { c.Record.URL = "" }},
		{"a record elsewhere", "record.url", func(c *replica.Cluster) { c.Record.URL = "s3://bucket" }},
		{"a record in a folder", "record.url", func(c *replica.Cluster) { c.Record.URL = "file:///srv/record" }},
		{"an endpoint without a host", "record.url",
			func(c *replica.Cluster) { c.Record.URL = "gs://bucket?endpoint=http://:80" }},
		{"an endpoint of another scheme", "record.url",
			func(c *replica.Cluster) { c.Record.URL = "gs://bucket?endpoint=ftp://h" }},
		{"an endpoint with a port that is none", "record.url",
			func(c *replica.Cluster) { c.Record.URL = "gs://bucket?endpoint=http://h:99999" }},
		{"a record with a query", "record.url", func(c *replica.Cluster) { c.Record.URL = "gs://bucket?prefix=a/" }},
		{"a bucket with a path", "record.url", func(c *replica.Cluster) { c.Record.URL = "gs://bucket/a" }},
		{"an endpoint that is none", "record.url",
			func(c *replica.Cluster) { c.Record.URL = "gs://bucket?endpoint=here" }},
		{"a bucket without its scheme", "record.url", func(c *replica.Cluster) { c.Record.URL = "bucket" }},
		{"two endpoints", "record.url",
			func(c *replica.Cluster) { c.Record.URL = "gs://bucket?endpoint=http://h&endpoint=http://i" }},
		{"an endpoint and a query that is none", "record.url",
			func(c *replica.Cluster) { c.Record.URL = "gs://bucket?endpoint=http://h&%zz" }},
		{"an endpoint and more", "record.url",
			func(c *replica.Cluster) { c.Record.URL = "gs://bucket?endpoint=http://h&x=1" }},
		{"a seal key beside the bucket", "seal.key", func(c *replica.Cluster) { c.Record.URL = "gs://bucket" }},
		{"no seal key", "seal.key", func(c *replica.Cluster) { c.Seal.Key = "" }},
		{"a random seal key", "seal.key", func(c *replica.Cluster) { c.Seal.Key = "base64key://" }},
		{"a short seal key", "seal.key", func(c *replica.Cluster) { c.Seal.Key = "base64key://" + secret[:40] }},
		{"a seal key with a line break", "seal.key", func(c *replica.Cluster) {
			c.Seal.Key = "base64key://" + secret +
				"\n"
		}},
		{"a seal key with more behind it", "seal.key",
			func(c *replica.Cluster) { c.Seal.Key = "base64key://" + secret + "?" }},
		{"a seal key without scheme", "seal.key", func(c *replica.Cluster) { c.Seal.Key = secret }},
		{"a KMS key that is none", "seal.key",
			func(c *replica.Cluster) { c.Seal.Key = "gcpkms://projects/p/keyRings/r" }},
		{"a Compute endpoint of another version", "compute.endpoint",
			func(c *replica.Cluster) { c.Compute.Endpoint = "http://10.0.0.1/compute/beta/" }},
		{"a Compute endpoint without scheme", "compute.endpoint",
			func(c *replica.Cluster) { c.Compute.Endpoint = "10.0.0.1/compute/v1/" }},
		{"a Compute endpoint of another scheme", "compute.endpoint",
			func(c *replica.Cluster) { c.Compute.Endpoint = "ftp://10.0.0.1/compute/v1/" }},
		{"a Compute endpoint without a host", "compute.endpoint",
			func(c *replica.Cluster) { c.Compute.Endpoint = "http:///compute/v1/" }},
		{"a Compute endpoint with a port that is none", "compute.endpoint",
			func(c *replica.Cluster) { c.Compute.Endpoint = "http://h:0/compute/v1/" }},
		{"a Compute endpoint with a password", "compute.endpoint",
			func(c *replica.Cluster) { c.Compute.Endpoint = "http://u:p@h/compute/v1/" }},
		{"a Compute endpoint with a query", "compute.endpoint",
			func(c *replica.Cluster) { c.Compute.Endpoint = "http://h/compute/v1/?a=/compute/v1/" }},
		{"a Compute endpoint with a fragment", "compute.endpoint",
			func(c *replica.Cluster) { c.Compute.Endpoint = "http://h/compute/v1/#/compute/v1/" }},
		{"a Compute endpoint that is no URL", "compute.endpoint",
			func(c *replica.Cluster) { c.Compute.Endpoint = "http://h\n/compute/v1/" }},
		{"too many replicas", "replicas", func(c *replica.Cluster) { c.Replicas = 8 }},
		{"negative replicas", "replicas", func(c *replica.Cluster) { c.Replicas = -1 }},
		{"a service range that does not parse", "network.serviceCIDRs[0]",
			func(c *replica.Cluster) { c.Network.ServiceCIDRs = []string{"10.96.0.0"} }},
		{"a service range that is not canonical", "network.serviceCIDRs[0]",
			func(c *replica.Cluster) { c.Network.ServiceCIDRs = []string{"10.96.0.1/12"} }},
		{"a service range too small", "network.serviceCIDRs[0]",
			func(c *replica.Cluster) { c.Network.ServiceCIDRs = []string{"10.96.0.0/30"} }},
		{"an IPv6 service range too large", "network.serviceCIDRs[0]",
			func(c *replica.Cluster) { c.Network.ServiceCIDRs = []string{"fd00:10:96::/63"} }},
		{"three service ranges", "network.serviceCIDRs", func(c *replica.Cluster) {
			c.Network.ServiceCIDRs = []string{"10.96.0.0/16", "fd00:10:96::/112", "10.97.0.0/16"}
		}},
		{"dual stack of one family", "network.serviceCIDRs[1]",
			func(c *replica.Cluster) { c.Network.ServiceCIDRs = []string{"10.96.0.0/16", "10.97.0.0/16"} }},
		{"pods among services", "network.podCIDR", func(c *replica.Cluster) { c.Network.PodCIDR = "10.100.0.0/16" }},
		{"pods around the endpoint", "endpoint.internalIP",
			func(c *replica.Cluster) { c.Endpoint.InternalIP = "10.244.1.1" }},
		{"the endpoint among services", "endpoint.internalIP",
			func(c *replica.Cluster) { c.Endpoint.InternalIP = "10.96.0.10" }},
		{"pods around the metadata server", "network.podCIDR",
			func(c *replica.Cluster) { c.Network.PodCIDR = "169.254.0.0/16" }},
		{"pods beside the metadata server", "network.podCIDR",
			func(c *replica.Cluster) { c.Network.PodCIDR = "169.254.128.0/24" }},
		{"pods far around the metadata server", "network.podCIDR",
			func(c *replica.Cluster) { c.Network.PodCIDR = "168.0.0.0/6" }},
		{"a DNS domain with capitals", "network.dnsDomain",
			func(c *replica.Cluster) { c.Network.DNSDomain = "Cluster.Local" }},
		{"a DNS domain with a final dot", "network.dnsDomain",
			func(c *replica.Cluster) { c.Network.DNSDomain = "cluster.local." }},
		{"a DNS domain that ends in digits", "network.dnsDomain",
			func(c *replica.Cluster) { c.Network.DNSDomain = "corp.1" }},
		{"a DNS domain too long for the apiserver's name", "network.dnsDomain",
			func(c *replica.Cluster) { c.Network.DNSDomain = nameOf(231) }},
		{"a relative data folder", "etcd.dataDir", func(c *replica.Cluster) { c.Etcd.DataDir = "var/lib" }},
		{"a data folder that climbs", "etcd.dataDir", func(c *replica.Cluster) { c.Etcd.DataDir = "/var/../etc" }},
		{"the root as data folder", "etcd.dataDir", func(c *replica.Cluster) { c.Etcd.DataDir = "/" }},
		{"a device with a slash", "etcd.dataDisk", func(c *replica.Cluster) { c.Etcd.DataDisk = "../sda" }},
		{"a quota too small", "etcd.quotaBytes", func(c *replica.Cluster) { c.Etcd.QuotaBytes = 1 << 20 }},
		{"a quota too large", "etcd.quotaBytes", func(c *replica.Cluster) { c.Etcd.QuotaBytes = 32 << 30 }},
		{"a heartbeat too fast", "etcd.heartbeat",
			func(c *replica.Cluster) { c.Etcd.Heartbeat = replica.Duration(9 * time.Millisecond) }},
		{"a heartbeat of half a millisecond", "etcd.heartbeat",
			func(c *replica.Cluster) { c.Etcd.Heartbeat = replica.Duration(20500 * time.Microsecond) }},
		{"an election under five heartbeats", "etcd.election",
			func(c *replica.Cluster) { c.Etcd.Election = replica.Duration(499 * time.Millisecond) }},
		{"an election above 50s", "etcd.election",
			func(c *replica.Cluster) { c.Etcd.Election = replica.Duration(51 * time.Second) }},
		{"an election of half a millisecond", "etcd.election",
			func(c *replica.Cluster) { c.Etcd.Election = replica.Duration(1000500 * time.Microsecond) }},
		{"snapshots every minute", "etcd.snapshots.interval",
			func(c *replica.Cluster) { c.Etcd.Snapshots.Interval = replica.Duration(time.Minute) }},
		{"snapshots every two days", "etcd.snapshots.interval",
			func(c *replica.Cluster) { c.Etcd.Snapshots.Interval = replica.Duration(48 * time.Hour) }},
		{"hourly snapshots for minutes", "etcd.snapshots.hourly",
			func(c *replica.Cluster) { c.Etcd.Snapshots.Hourly = replica.Duration(10 * time.Minute) }},
		{"daily snapshots shorter than hourly ones", "etcd.snapshots.daily",
			func(c *replica.Cluster) { c.Etcd.Snapshots.Daily = replica.Duration(24 * time.Hour) }},
		{"a kubelet that is no service", "kubelet.unit", func(c *replica.Cluster) { c.Kubelet.Unit = "kubelet" }},
		{"the agent as a kubelet", "kubelet.unit", func(c *replica.Cluster) { c.Kubelet.Unit = "quorate.service" }},
		{"one unit for kubelet and runtime", "kubelet.runtimeUnit",
			func(c *replica.Cluster) { c.Kubelet.RuntimeUnit = "kubelet.service" }},
		{"a runtime's socket with a scheme", "kubelet.runtimeSocket",
			func(c *replica.Cluster) { c.Kubelet.RuntimeSocket = "unix:///run/containerd/containerd.sock" }},
		{"a health port of nobody", "kubelet.healthPort", func(c *replica.Cluster) { c.Kubelet.HealthPort = -1 }},
		{"a kubelet's health at the apiserver's port", "kubelet.healthPort",
			func(c *replica.Cluster) { c.Kubelet.HealthPort = c.Endpoint.Port }},
		{"a kubelet's health at etcd's port", "kubelet.healthPort",
			func(c *replica.Cluster) { c.Kubelet.HealthPort = 2379 }},
		{"answers at once", "kubelet.answerWithin",
			func(c *replica.Cluster) { c.Kubelet.AnswerWithin = replica.Duration(999 * time.Millisecond) }},
		{"answers within minutes", "kubelet.answerWithin",
			func(c *replica.Cluster) { c.Kubelet.AnswerWithin = replica.Duration(61 * time.Second) }},
		{"one answer that fails", "kubelet.misses", func(c *replica.Cluster) { c.Kubelet.Misses = 1 }},
		{"too many answers that fail", "kubelet.misses", func(c *replica.Cluster) { c.Kubelet.Misses = 21 }},
		{"a start-up within seconds", "kubelet.startWithin",
			func(c *replica.Cluster) { c.Kubelet.StartWithin = replica.Duration(59 * time.Second) }},
		{"a start-up for hours", "kubelet.startWithin",
			func(c *replica.Cluster) { c.Kubelet.StartWithin = replica.Duration(2 * time.Hour) }},
		{"few catch-up entries", "etcd.catchUpEntries", func(c *replica.Cluster) { c.Etcd.CatchUpEntries = 4999 }},
		{"many catch-up entries", "etcd.catchUpEntries", func(c *replica.Cluster) { c.Etcd.CatchUpEntries = 1000001 }},
		{"an unknown election profile", "election", func(c *replica.Cluster) { c.Election = "quick" }},
		{"an unknown word about survivors", "survivors", func(c *replica.Cluster) { c.Survivors = "ask" }},
		{"a relative add-ons' folder", "addons.folder", func(c *replica.Cluster) { c.Addons.Folder = "addons" }},
		{"the root as add-ons' folder", "addons.folder", func(c *replica.Cluster) { c.Addons.Folder = "/" }},
		{"an unknown example", "addons.examples[1]",
			func(c *replica.Cluster) {
				c.Addons = replica.Addons{Examples: []string{"coredns", "calico"}, Version: 1}
			}},
		{"an example twice", "addons.examples[1]",
			func(c *replica.Cluster) {
				c.Addons = replica.Addons{Examples: []string{"coredns", "coredns"}, Version: 1}
			}},
		{"examples beside a folder", "addons.examples", func(c *replica.Cluster) {
			c.Addons = replica.Addons{Folder: "/etc/quorate/addons", Examples: []string{"coredns"}, Version: 1}
		}},
		{"a version of no examples", "addons.version", func(c *replica.Cluster) { c.Addons.Version = 2 }},
		{"a negative version of examples", "addons.version",
			func(c *replica.Cluster) { c.Addons = replica.Addons{Examples: []string{"coredns"}, Version: -1} }},
		{"no room for the DNS's address", "network.serviceCIDRs[0]", func(c *replica.Cluster) {
			c.Network.ServiceCIDRs = []string{"10.96.0.0/29"}
			c.Addons = replica.Addons{Examples: []string{"coredns"}, Version: 1}
		}},
		{"a component with the add-on manager's name", "components", func(c *replica.Cluster) {
			c.Components["addons"] = replica.Component{Enabled: new(true), Binary: "/bin/x", Elect: "self",
				Probe: &replica.Probe{URL: "http://127.0.0.1:1/"}}
		}},
		{"a relative audit policy", "auditPolicy", func(c *replica.Cluster) { c.AuditPolicy = "policy.yaml" }},
		{"an audit policy with a line break", "auditPolicy", func(c *replica.Cluster) { c.AuditPolicy = "/etc/a\nb" }},
		{"an audit policy with DEL", "auditPolicy", func(c *replica.Cluster) { c.AuditPolicy = "/etc/a\x7fb" }},
		{"an audit policy with a doubled slash", "auditPolicy", func(c *replica.Cluster) { c.AuditPolicy = "/etc//a" }},
		{"a relative binary", "components.kube-scheduler.binary", func(c *replica.Cluster) {
			component(c, "kube-scheduler", func(k *replica.Component) { k.Binary = "kube-scheduler" })
		}},
		{"an unknown component without binary", "components.ccm.binary",
			func(c *replica.Cluster) { further(c, func(k *replica.Component) { k.Binary = "" }) }},
		{"an unknown component without probe", "components.ccm.probe",
			func(c *replica.Cluster) { further(c, func(k *replica.Component) { k.Probe = nil }) }},
		{"a component that is no DNS label", "components", func(c *replica.Cluster) {
			further(c, func(*replica.Component) {})
			c.Components["Cloud_CM"] = c.Components["ccm"]
		}},
		{"a probe of another machine", "components.ccm.probe.url", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Probe.URL = "http://10.0.0.1/healthz" })
		}},
		{"a probe that is no URL", "components.ccm.probe.url", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Probe.URL = "127.0.0.1:80" })
		}},
		{"a probe of another scheme", "components.ccm.probe.url", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Probe.URL = "tcp://127.0.0.1:80" })
		}},
		{"a probe with a password", "components.ccm.probe.url", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Probe.URL = "http://u:p@127.0.0.1:80/" })
		}},
		{"a probe with a port that is none", "components.ccm.probe.url", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Probe.URL = "http://127.0.0.1:65536/" })
		}},
		{"a probe with a line break", "components.ccm.probe.url", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Probe.URL = "http://127.0.0.1:80/\n" })
		}},
		{"a probe for a known component", "components.kube-apiserver.probe", func(c *replica.Cluster) {
			component(c, "kube-apiserver",
				func(k *replica.Component) { k.Probe = &replica.Probe{URL: "https://localhost/"} })
		}},
		{"an agent's election for a known component", "components.kube-scheduler.elect", func(c *replica.Cluster) {
			component(c, "kube-scheduler", func(k *replica.Component) { k.Elect = "agent" })
		}},
		{"an election by nobody", "components.ccm.elect",
			func(c *replica.Cluster) { further(c, func(k *replica.Component) { k.Elect = "none" }) }},
		{"an argument that is no flag", "components.ccm.extraArgs[1]", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.ExtraArgs = []string{"--v=2", "run"} })
		}},
		{"a bare --", "components.ccm.extraArgs[0]", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.ExtraArgs = []string{"--"} })
		}},
		{"three dashes", "components.ccm.extraArgs[0]", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.ExtraArgs = []string{"---v=2"} })
		}},
		{"a flag without a name", "components.ccm.extraArgs[0]", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.ExtraArgs = []string{"--=2"} })
		}},
		{"one dash", "components.ccm.extraArgs[0]", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.ExtraArgs = []string{"-v=2"} })
		}},
		{"a blank before =", "components.ccm.extraArgs[0]", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.ExtraArgs = []string{"--bind-address =::"} })
		}},
		{"a value in the flag's argument, behind a blank", "components.ccm.extraArgs[0]", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.ExtraArgs = []string{"--bind-address ::"} })
		}},
		{"a line break in a value", "components.ccm.extraArgs[0]", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.ExtraArgs = []string{"--v=2\n"} })
		}},
		{"nothing as an argument", "components.ccm.extraArgs[0]", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.ExtraArgs = []string{""} })
		}},
		{"an environment name with =", "components.ccm.env", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Env = map[string]string{"A=B": "c"} })
		}},
		{"the agent's notify socket", "components.ccm.env", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Env = map[string]string{"NOTIFY_SOCKET": "/run/x"} })
		}},
		{"the agent's watchdog", "components.ccm.env", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Env = map[string]string{"WATCHDOG_USEC": "1"} })
		}},
		{"the agent's sockets", "components.ccm.env", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Env = map[string]string{"LISTEN_FDS": "1"} })
		}},
		{"a little memory", "components.ccm.resources.memoryMaxBytes", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Resources.MemoryMaxBytes = 4096 })
		}},
		{"less than none", "components.ccm.resources.memoryHighBytes", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Resources.MemoryHighBytes = -1 })
		}},
		{"slow above the end", "components.ccm.resources.memoryHighBytes", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) {
				k.Resources = replica.Resources{MemoryMaxBytes: 1 << 30, MemoryHighBytes: 1<<30 + 1}
			})
		}},
		{"a weight that the kernel does not know", "components.ccm.resources.cpuWeight", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Resources.CPUWeight = 10001 })
		}},
		{"a zero byte in the environment", "components.ccm.env.A", func(c *replica.Cluster) {
			further(c, func(k *replica.Component) { k.Env = map[string]string{"A": "b\x00c"} })
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := valid()
			tc.change(c)
			err := c.Validate()
			var faults replica.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v", err)
			}
			for _, f := range faults {
				if f.Field != tc.want || f.Allowed == "" {
					t.Errorf("unexpected: %s (field %q, want %q)", f, f.Field, tc.want)
				}
			}
			if strings.Contains(err.Error(), secret[:20]) {
				t.Errorf("the seal key is in %q", err)
			}
		})
	}
}

// nameOf is a DNS name of so many bytes.
func nameOf(bytes int) string {
	return strings.Repeat("a.", (bytes-1)/2) + strings.Repeat("b", 2-bytes%2)
}

var tenYears = replica.Snapshots{Interval: replica.Duration(time.Hour), Hourly: replica.Duration(90000 * time.Hour),
	Daily: replica.Duration(90000 * time.Hour)}

func withEnv(names ...string) func(*replica.Cluster) {
	return func(c *replica.Cluster) {
		component := c.Components["kube-scheduler"]
		component.Env = replica.Env{}
		for _, name := range names {
			component.Env[name] = "1"
		}
		c.Components["kube-scheduler"] = component
	}
}

func TestValidateAccepts(t *testing.T) {
	for name, change := range map[string]func(*replica.Cluster){
		"the largest of all": func(c *replica.Cluster) {
			c.Replicas, c.Endpoint.Port, c.Etcd.QuotaBytes, c.Etcd.CatchUpEntries = 7, 65535, 16<<30, 1000000
			c.Etcd.Snapshots.Interval = replica.Duration(24 * time.Hour)
		},
		"the smallest of all": func(c *replica.Cluster) {
			c.Replicas, c.Endpoint.Port, c.Etcd.QuotaBytes, c.Etcd.CatchUpEntries = 1, 1, 16<<20, 5000
			c.Etcd.Snapshots.Interval = replica.Duration(5 * time.Minute)
		},
		"IPv6 services of 63 bits": func(c *replica.Cluster) { c.Network.ServiceCIDRs = []string{"fd00:10:96::/65"} },
		"an internal address alone": func(c *replica.Cluster) {
			c.Endpoint.ExternalIP, c.Endpoint.InternalIP = "", "10.0.0.1"
		},
		"a name of 253 bytes": func(c *replica.Cluster) { c.Endpoint.DNSNames = []string{nameOf(253)} },
		"digits before the last part": func(
			c *replica.Cluster) {
			c.Endpoint.DNSNames = []string{"1.2.3.4.example.com", "4you"}
		},
		"the longest DNS domain":   func(c *replica.Cluster) { c.Network.DNSDomain = nameOf(230) },
		"a DNS domain of one part": func(c *replica.Cluster) { c.Network.DNSDomain = "local" },
		"snapshots for exactly an hour": func(c *replica.Cluster) {
			c.Etcd.Snapshots.Hourly = replica.Duration(
				time.Hour)
		},
		"snapshots for ten years": func(c *replica.Cluster) { c.Etcd.Snapshots = tenYears },
		"the longest election": func(c *replica.Cluster) {
			c.Etcd.Election = replica.Duration(
				50 * time.Second)
		},
		"other variables than systemd's": withEnv("XWATCHDOG_USEC", "NOTIFY_SOCKETS", "listen_fds"),
		"flags of every shape": func(c *replica.Cluster) {
			component := c.Components["kube-scheduler"]
			component.ExtraArgs = []string{"--v", "--v=", "--a.b_c-d:E=x=y z", "--9=\u00fc"}
			c.Components["kube-scheduler"] = component
		},
		"a probe without a port": func(c *replica.Cluster) {
			c.Components["ccm"] = replica.Component{Binary: "/x", Elect: "self",
				Probe: &replica.Probe{URL: "http://localhost/"}}
		},
		"dual stack": func(c *replica.Cluster) {
			c.Network.ServiceCIDRs = []string{"10.96.0.0/16",
				"fd00:10:96::/112"}
		},
		"IPv6 services first": func(c *replica.Cluster) { c.Network.ServiceCIDRs = []string{"fd00:10:96::/64"} },
		"a /8 of services": func(c *replica.Cluster) {
			c.Network.ServiceCIDRs, c.Network.PodCIDR = []string{"10.0.0.0/8"}, "172.16.0.0/16"
		},
		"eight service addresses": func(c *replica.Cluster) { c.Network.ServiceCIDRs = []string{"10.96.0.0/29"} },
		"one address as endpoint": func(c *replica.Cluster) { c.Endpoint.InternalIP = c.Endpoint.ExternalIP },
		"the shortest timers": func(c *replica.Cluster) {
			c.Etcd.Heartbeat, c.Etcd.Election = replica.Duration(10*time.Millisecond),
				replica.Duration(50*time.Millisecond)
		},
		"a key in KMS": func(
			c *replica.Cluster) {
			c.Seal.Key = "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"
		},
		"a local Compute endpoint": func(
			c *replica.Cluster) {
			c.Compute.Endpoint = "http://169.254.169.253:8080/compute/v1/"
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := valid()
			change(c)
			if err := c.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The longer one is checked against the shorter one, which may be at fault itself.
func TestSnapshotsKeptTooLongAreBothNamed(t *testing.T) {
	c := valid()
	c.Etcd.Snapshots.Hourly, c.Etcd.Snapshots.Daily = replica.Duration(90001*time.Hour),
		replica.Duration(90002*time.Hour)
	err := fmt.Sprint(c.Validate())
	if !strings.Contains(err, "etcd.snapshots.hourly: found") || !strings.Contains(err, "etcd.snapshots.daily: found") {
		t.Error(err)
	}
}

func TestValidateNamesEveryFaultAtOnce(t *testing.T) {
	c := valid()
	c.Name, c.Replicas, c.Network.PodCIDR, c.Etcd.DataDir, c.Election = "", 9, "x", "y", "z"
	var faults replica.Faults
	if err := c.Validate(); !errors.As(err, &faults) || len(faults) != 5 {
		t.Errorf("got %v, want five faults", err)
	}
	for i, want := range map[int]string{
		1: `replicas: found "9"; allowed: 1 to 7`,
		2: `network.podCIDR: found "x"; allowed: a range such as 10.96.0.0/12 or fd00:10:96::/112`,
	} {
		if got := faults[i].Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A key that stands in the document is read by whoever reads the metadata, and the bucket is read by the same ones.
func TestASealKeyInTheDocumentIsRefusedBesideABucket(t *testing.T) {
	for record, refused := range map[string]bool{
		"gs://bucket":                           true,
		"gs://bucket?endpoint=http://127.0.0.1": false, // a stand-in of Google's on this machine
	} {
		c := valid()
		c.Record.URL = record
		err := c.Validate()
		if (err != nil) != refused {
			t.Errorf("%s: %v", record, err)
		}
		if err == nil {
			continue
		}
		for _, part := range []string{"seal.key", "gcpkms://", "in the metadata or in the image"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %q", record, err, part)
			}
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: it holds the key: %v", record, err)
		}
	}
	c := valid()
	c.Record.URL, c.Seal.Key = "gs://bucket", "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"
	if err := c.Validate(); err != nil {
		t.Errorf("a key of Cloud KMS beside a bucket: %v", err)
	}
}
