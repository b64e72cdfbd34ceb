// Package replica holds the value types that every part of quorate speaks: who a replica is (Identity), where it lives
// (Place), who its peers are (Peer), what the Compute API shows of them (VM, Disk), and the configuration of the
// cluster that it belongs to (Cluster).
//
// The package is values only: it reads no file, asks no server and imports nothing of quorate. What comes from outside
// is decoded strictly (Parse) and validated with every fault named at once (Cluster.Validate).
package replica

import (
	"net/netip"
	"strings"

	"github.com/quorate/quorate/internal/pattern"
)

// Place is where a replica lives: one VM at a time can have a name in a zone, so a place is what stays when a VM is
// recreated, and a newer VM in the same place proves that the older one is gone.
type Place struct {
	Zone string `json:"zone"`
	Name string `json:"name"`
}

// String is "<zone>.<name>", as the record's object names and etcd's member names spell it. Neither GCE zones nor
// instance names hold a dot.
func (p Place) String() string { return p.Zone + "." + p.Name }

// ComparePlaces orders places by their names, as they are shown.
func ComparePlaces(a, b Place) int { return strings.Compare(a.String(), b.String()) }

// PlaceNames spells places for a message.
func PlaceNames(list []Place) []string {
	names := make([]string, 0, len(list))
	for _, p := range list {
		names = append(names, p.String())
	}
	return names
}

// gceName is what GCE allows as the name of an instance and of a zone (RFC 1035).
var gceName = pattern.Of(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Valid reports whether GCE can have a VM in this place. A place becomes a line of the hosts file, a path of the record
// and a member's name: with a blank in it, it would be several.
func (p Place) Valid() bool { return gceName().MatchString(p.Zone) && gceName().MatchString(p.Name) }

// ParsePlace is the inverse of Place.String. It reports false for anything that String cannot have written for a valid
// place.
func ParsePlace(s string) (Place, bool) {
	zone, name, _ := strings.Cut(s, ".")
	p := Place{Zone: zone, Name: name}
	if !p.Valid() {
		return Place{}, false
	}
	return p, true
}

// DNSName is the name by which peers and clients reach the replica in this place, whatever its address:
// "<name>.<zone>.<cluster>.quorate.internal". The agents keep it in /etc/hosts. Peer URLs are made of it because a
// cluster whose members all came back with new addresses cannot repair addresses in its URLs: that needs quorum.
func (p Place) DNSName(cluster string) string {
	return p.Name + "." + p.Zone + "." + cluster + ".quorate.internal"
}

// Identity is who this VM is, read from the metadata server at every start of the agent.
type Identity struct {
	Place
	// InstanceID is GCE's numeric id, never given twice.
	InstanceID string `json:"instanceID"`
	// BootID is the kernel's random id of this boot (/proc/sys/kernel/random/boot_id).
	BootID string `json:"bootID"`
	// Project and ProjectNumber name the GCE project that the VM runs in.
	Project       string `json:"project"`
	ProjectNumber string `json:"projectNumber"`
	// Addresses are the internal addresses of the VM's interfaces, nic0 first. External (NAT) addresses never appear:
	// an ephemeral one may be a stranger's tomorrow.
	Addresses []netip.Addr `json:"addresses"`
}

// Region is the zone without its last part: "us-central1" for "us-central1-a".
func (i Identity) Region() string { return RegionOf(i.Zone) }

// RegionOf is the region of a GCE zone.
func RegionOf(zone string) string {
	if n := strings.LastIndexByte(zone, '-'); n > 0 {
		return zone[:n]
	}
	return zone
}

// Address is the primary internal address, nic0's first.
func (i Identity) Address() netip.Addr {
	if len(i.Addresses) == 0 {
		return netip.Addr{}
	}
	return i.Addresses[0]
}

// MemberName is etcd's name for the member of this VM: "<zone>.<name>.<instance id>".
func (i Identity) MemberName() string { return i.Place.String() + "." + i.InstanceID }

// HostNames are the names that the VM answers to inside GCE, for the subject alternative names of its certificates.
// A domain-scoped project "example.com:proj" becomes "proj.example.com" in them.
func (i Identity) HostNames() []string {
	project := i.Project
	if domain, id, ok := strings.Cut(project, ":"); ok {
		project = id + "." + domain
	}
	names := []string{i.Name}
	if project != "" {
		names = append(names, i.Name+".c."+project+".internal", i.Name+"."+i.Zone+".c."+project+".internal")
	}
	return names
}

// Peer is another replica as the record's newest incarnations name it.
type Peer struct {
	Place
	InstanceID string       `json:"instanceID"`
	Addresses  []netip.Addr `json:"addresses"`
}
