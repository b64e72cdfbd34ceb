package replica

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/pattern"
)

const (
	gceNameRule = "a name of GCE's: 1 to 63 of a-z, 0-9 and -, beginning with a letter and not ending with -"
	projectRule = "a project's id, such as example-123; not its number"
	imageRule   = "NAME, family/NAME, projects/PROJECT/global/images/NAME or projects/PROJECT/global/images/family/NAME"
	accountRule = "the email of a service account, such as NAME@PROJECT.iam.gserviceaccount.com"
	// mostTags is GCE's limit for one VM, mostLabels that of one resource; one label is quorate's own.
	mostTags   = 64
	mostLabels = 63
	// Sizes of a disk in GB: GCE makes no smaller persistent disk, and none above 64 TB.
	minDiskGB = 10
	maxDiskGB = 64 << 10
	// clusterLabel is the label that quorate itself puts on VMs and disks (gce.ClusterLabel).
	clusterLabel = "quorate-cluster"
)

// diskTypes are the types of disk that one VM at a time writes to and that live on without it. The schema's list is
// made of this one.
var diskTypes = []string{"pd-standard", "pd-balanced", "pd-ssd", "pd-extreme", "hyperdisk-balanced",
	"hyperdisk-extreme"}

var (
	// projectID allows a domain before it (example.com:project), as old projects have.
	projectID = pattern.Of(`^([a-z0-9][-.a-z0-9]*:)?[a-z]([-a-z0-9]{4,61}[a-z0-9])$`)
	imageName = pattern.Of(`^(projects/[^/\s]+/global/images/)?(family/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	network   = pattern.Of(`^(projects/[^/\s]+/global/networks/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	subnet    = pattern.Of(`^(projects/[^/\s]+/regions/([^/\s]+)/subnetworks/)?` +
		`[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	account   = pattern.Of(`^[a-z0-9][-a-z0-9.]*@[a-z0-9][-a-z0-9.]*\.gserviceaccount\.com$`)
	labelName = pattern.Of(`^[a-z][-_a-z0-9]{0,62}$`)
	label     = pattern.Of(`^[-_a-z0-9]{0,63}$`)
)

// validateGCE checks the section of those who make VMs; a document without it is fine.
func (c *Cluster) validateGCE(f *Faults) {
	g := c.GCE
	if g == nil {
		return
	}
	matches := func(field, value string, rule func() *regexp.Regexp, allowed string) {
		if !rule().MatchString(value) {
			f.add("gce."+field, value, allowed)
		}
	}
	matches("project", g.Project, projectID, projectRule)
	matches("region", g.Region, gceName, gceNameRule+", such as europe-west1")
	g.validateZones(f)
	matches("machineType", g.MachineType, gceName, gceNameRule+", such as e2-standard-4")
	matches("image", g.Image, imageName, imageRule)
	matches("network", g.Network, network, "NAME or projects/PROJECT/global/networks/NAME")
	at := subnet().FindStringSubmatch(g.Subnetwork)
	if g.Subnetwork != "" && (at == nil || at[2] != "" && at[2] != g.Region) {
		f.add("gce.subnetwork", g.Subnetwork, "NAME or projects/PROJECT/regions/"+g.Region+
			"/subnetworks/NAME, in gce.region")
	}
	matches("serviceAccount", g.ServiceAccount, account, accountRule)
	g.BootDisk.validate("gce.bootDisk", f)
	g.DataDisk.validate("gce.dataDisk", f)
	// A restore keeps the old database, reads the source and builds the new one.
	if need := (3*c.Etcd.QuotaBytes)>>30 + 1; g.DataDisk.SizeGB >= minDiskGB && g.DataDisk.SizeGB < need {
		f.add("gce.dataDisk.sizeGB", strconv.FormatInt(g.DataDisk.SizeGB, 10),
			fmt.Sprintf("%d or more: room for three databases of etcd.quotaBytes and 1 GiB", need))
	}
	g.validateTags(f)
	g.validateLabels(f)
	g.validateSources(f)
	for kind, address := range map[string]string{ExternalBalancer: c.Endpoint.ExternalIP,
		InternalBalancer: c.Endpoint.InternalIP} {
		if g.LoadBalancer.Type == kind && address == "" {
			f.add("gce.loadBalancer.type", kind, "another type, or endpoint."+kind+"IP: the load balancer's address")
		}
	}
	oneOf(f, "gce.loadBalancer.type", g.LoadBalancer.Type, ExternalBalancer, InternalBalancer, NoBalancer)
	if g.LoadBalancer.OnDemand && g.LoadBalancer.Type != ExternalBalancer {
		f.add("gce.loadBalancer.onDemand", "true", "false, or gce.loadBalancer.type "+ExternalBalancer+
			": an internal address is no VM's")
	}
	if name := g.LoadBalancer.Name; name != "" {
		matches("loadBalancer.name", name, gceName, gceNameRule+"; the cluster's name where it is not given")
	}
}

// validateSources refuses what Google takes for no range, and a range that has bits beyond its length: it would read
// like another one than it is.
func (g *GCE) validateSources(f *Faults) {
	for i, source := range g.Firewall.APISources {
		p, err := netip.ParsePrefix(source)
		at := fmt.Sprintf("gce.firewall.apiSources[%d]", i)
		switch {
		case err != nil || p != p.Masked() || !p.Addr().Is4():
			f.add(at, source, "a range of IPv4 addresses, such as 10.128.0.0/20")
		case slices.Contains(g.Firewall.APISources[:i], source):
			f.add(at, source, "each range once")
		}
	}
}

func (g *GCE) validateZones(f *Faults) {
	if len(g.Zones) == 0 {
		f.add("gce.zones", "", "at least one zone of gce.region")
	}
	for i, zone := range g.Zones {
		at := fmt.Sprintf("gce.zones[%d]", i)
		switch {
		case !gceName().MatchString(zone) || RegionOf(zone) != g.Region:
			f.add(at, zone, "a zone of gce.region, such as "+g.Region+"-b")
		case slices.Contains(g.Zones[:i], zone):
			f.add(at, zone, "each zone once")
		}
	}
}

func (d GCEDisk) validate(at string, f *Faults) {
	oneOf(f, at+".type", d.Type, diskTypes...)
	if d.SizeGB < minDiskGB || d.SizeGB > maxDiskGB {
		f.add(at+".sizeGB", strconv.FormatInt(d.SizeGB, 10), fmt.Sprintf("%d to %d", minDiskGB, maxDiskGB))
	}
}

func (g *GCE) validateTags(f *Faults) {
	if len(g.Tags) > mostTags {
		f.add("gce.tags", fmt.Sprintf("%d tags", len(g.Tags)), fmt.Sprintf("at most %d", mostTags))
	}
	for i, tag := range g.Tags {
		at := fmt.Sprintf("gce.tags[%d]", i)
		switch {
		case !gceName().MatchString(tag):
			f.add(at, tag, gceNameRule)
		case slices.Contains(g.Tags[:i], tag):
			f.add(at, tag, "each tag once")
		}
	}
}

func (g *GCE) validateLabels(f *Faults) {
	if len(g.Labels) > mostLabels {
		f.add("gce.labels", fmt.Sprintf("%d labels", len(g.Labels)), fmt.Sprintf("at most %d", mostLabels))
	}
	for _, name := range sortedKeys(g.Labels) {
		value := g.Labels[name]
		at := join("gce.labels", name)
		switch {
		case name == clusterLabel:
			f.add(at, value, "another label: this one is quorate's own, and names the cluster")
		case !labelName().MatchString(name):
			f.add(at, name, "as a label's name: 1 to 63 of a-z, 0-9, - and _, beginning with a letter")
		case !label().MatchString(value):
			f.add(at, value, "up to 63 of a-z, 0-9, - and _")
		}
	}
}

// ImagePath is the image's path below the Compute API's root, whichever way the document names it.
func (g *GCE) ImagePath() string { return inProject(g.Image, "projects/"+g.Project+"/global/images/") }

// NetworkPath is the network's path below the Compute API's root.
func (g *GCE) NetworkPath() string {
	return inProject(g.Network, "projects/"+g.Project+"/global/networks/")
}

// SubnetworkPath is the subnetwork's path below the Compute API's root; empty: the network chooses it.
func (g *GCE) SubnetworkPath() string {
	if g.Subnetwork == "" {
		return ""
	}
	return inProject(g.Subnetwork, "projects/"+g.Project+"/regions/"+g.Region+"/subnetworks/")
}

// inProject puts the folder before a name that has none.
func inProject(name, folder string) string {
	if strings.HasPrefix(name, "projects/") {
		return name
	}
	return folder + name
}
