package replica

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/pattern"
)

const (
	dnsLabelRule = "a DNS label: 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
	// HostNameRule is what IsHostName wants, for people.
	HostNameRule = "a DNS name: labels of a-z, 0-9 and - joined by dots, 253 bytes at most, the last not of " +
		"digits alone"
	pathRule = "an absolute path without .. or doubled slashes"
)

var (
	dnsLabel = pattern.Of(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	dnsName  = pattern.Of(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`)
	// deviceName is what GCE allows as a disk's device name; it becomes part of a path under /dev/disk/by-id.
	deviceName = pattern.Of(`^[A-Za-z0-9][-_.A-Za-z0-9]{0,62}$`)
)

// MostReplicas is the largest number of replicas that a cluster may have; etcd advises against more voters.
const MostReplicas = 7

// takenPorts are those that other parts of a replica listen on: the apiserver wants its port on every address.
var takenPorts = map[int]string{
	22: "sshd", 2379: "etcd's clients", 2380: "etcd's peers", 2381: "etcd's metrics",
	2382: "etcd's HTTP paths", 8085: Autoscaler,
	kubeletHealthPort: "the kubelet's health", 10249: "kube-proxy's metrics", 10250: "the kubelet",
	10256: "kube-proxy's health",
	10257: ControllerManager, 10259: Scheduler, 10270: "the agent's metrics",
}

// onlyDigits is a name that a reader takes for an address, or for the end of one.
var onlyDigits = pattern.Of(`(^|\.)[0-9]+$`)

// IsHostName reports whether a name can stand in a certificate: in the one spelling that it has, without a wildcard,
// and not to be taken for an address.
func IsHostName(name string) bool {
	return len(name) <= 253 && dnsName().MatchString(name) && !onlyDigits().MatchString(name)
}

// CheckName says why no cluster can have a name, where a document is not there to be validated; the error is a Faults.
func CheckName(name string) error {
	var f Faults
	checkName(name, &f)
	return f.errOrNil()
}

func checkName(name string, f *Faults) {
	if !dnsLabel().MatchString(name) {
		f.add("name", name, dnsLabelRule)
	}
}

// Validate checks a defaulted document and names every fault at once; the error is a Faults.
func (c *Cluster) Validate() error {
	var f Faults
	if c.APIVersion != APIVersion {
		f.add("apiVersion", c.APIVersion, APIVersion)
	}
	if c.Kind != Kind {
		f.add("kind", c.Kind, Kind)
	}
	checkName(c.Name, &f)
	c.Endpoint.validate(&f)
	c.Record.validate(&f)
	c.Seal.validate(c.Record, &f)
	c.Compute.validate(&f)
	c.validateGCE(&f)
	if c.Replicas < 1 || c.Replicas > MostReplicas {
		f.add("replicas", strconv.Itoa(c.Replicas), fmt.Sprintf("1 to %d", MostReplicas))
	}
	c.validateNetwork(&f)
	c.Etcd.validate(&f)
	c.Kubelet.validate(c.Endpoint.Port, &f)
	for _, name := range sortedKeys(c.Components) {
		c.Components[name].validate(name, &f)
	}
	oneOf(&f, "election", c.Election, ElectionFast, ElectionSlow)
	oneOf(&f, "survivors", c.Survivors, SurvivorsRestore, SurvivorsWait)
	c.validateJWT(&f)
	c.Authorization.validate(&f)
	c.validateAddons(&f)
	if c.AuditPolicy != "" && !cleanPath(c.AuditPolicy) {
		f.add("auditPolicy", c.AuditPolicy, pathRule)
	}
	return f.errOrNil()
}

func (e Endpoint) validate(f *Faults) {
	if e.ExternalIP == "" && e.InternalIP == "" {
		f.add("endpoint", "", "externalIP, internalIP or both: the reserved address by which clients reach the cluster")
	}
	for _, a := range []struct{ field, value string }{{"endpoint.externalIP", e.ExternalIP},
		{"endpoint.internalIP", e.InternalIP}} {
		if a.value == "" {
			continue
		}
		if addr, err := netip.ParseAddr(a.value); err != nil || !reachable(addr) {
			f.add(a.field, a.value,
				"an address that clients can reach: not loopback, link-local, multicast, unspecified or reserved, "+
					"and without a zone")
		}
	}
	for i, name := range e.DNSNames {
		if !IsHostName(name) {
			f.add(fmt.Sprintf("endpoint.dnsNames[%d]", i), name, HostNameRule)
		}
	}
	if owner, taken := takenPorts[e.Port]; taken {
		f.add("endpoint.port", strconv.Itoa(e.Port), "another port: "+owner+" has this one")
	} else if e.Port < 1 || e.Port > 65535 {
		f.add("endpoint.port", strconv.Itoa(e.Port), "1 to 65535")
	}
}

// reachable: an IPv4 address in IPv6 clothes is refused too, since it would not compare equal to itself elsewhere.
func reachable(a netip.Addr) bool {
	return !a.Is4In6() && a.Zone() == "" &&
		!slices.ContainsFunc(forbiddenRanges, func(p netip.Prefix) bool { return p.Contains(a) })
}

func oneOf(f *Faults, field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		f.add(field, value, strings.Join(allowed, ", "))
	}
}

// cleanPath refuses what would name another file than it seems to, and control characters.
func cleanPath(p string) bool {
	return filepath.IsAbs(p) && filepath.Clean(p) == p && !strings.ContainsFunc(p, isControl)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
