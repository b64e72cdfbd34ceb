package setup

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// Wanted are the facts that a document says: what the project has to have. With its section gce also project, region
// and account, and the masters that are to be made, one in each of the zones; without zones, in the document's.
func Wanted(c *replica.Cluster, dataDisk string, zones []string) Facts {
	f := Facts{Cluster: c.Name, DataDisk: dataDisk, Port: c.Endpoint.Port}
	f.External, _ = netip.ParseAddr(c.Endpoint.ExternalIP) // one that is not given is invalid
	f.Internal, _ = netip.ParseAddr(c.Endpoint.InternalIP)
	if name, ok := strings.CutPrefix(c.Seal.Key, "gcpkms://"); ok {
		f.KeyName = name // a key that is no name must not be printed
	}
	if c.GCE != nil {
		f.wantMasters(c, zones)
	}
	return f
}

// newMaster is what a master is called that has no name yet.
const newMaster = "new-master"

func (f *Facts) wantMasters(c *replica.Cluster, zones []string) {
	g, balancer := c.GCE, c.LoadBalancer().Type
	f.Project, f.Region, f.Account = g.Project, g.Region, g.ServiceAccount
	f.Balanced, f.MakesAddress = balancer != "", balancer == replica.InternalBalancer
	f.MakesRules = len(g.Firewall.APISources) > 0
	if owner := projectOf(g.NetworkPath()); owner != g.Project {
		f.NetworkProject = owner
	}
	if len(zones) == 0 {
		zones = g.Zones
	}
	for _, z := range zones {
		vm := VM{Place: replica.Place{Zone: z, Name: newMaster}, Labelled: true, Account: g.ServiceAccount,
			Network: lastPart(g.NetworkPath()), Subnet: lastPart(g.SubnetworkPath()), Tags: g.Tags}
		if !slices.ContainsFunc(f.Planned, func(p VM) bool { return p.Place == vm.Place }) {
			f.Planned = append(f.Planned, vm)
		}
	}
}

// projectOf is the project in a link that begins with projects/PROJECT/.
func projectOf(link string) string {
	parts := strings.SplitN(link, "/", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[1]
}

func lastPart(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }
