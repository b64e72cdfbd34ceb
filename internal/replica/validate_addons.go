package replica

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// dnsHost is the number of the DNS's address in the range of Services, by the world's custom.
const dnsHost = 10

// DNSAddress is the address of the cluster's DNS in a document that has been validated. It is the zero one where the
// range of Services is too small for it, which only a document without the example coredns may have.
func DNSAddress(c *Cluster) netip.Addr {
	services, err := netip.ParsePrefix(c.Network.ServiceCIDRs[0])
	if err != nil {
		return netip.Addr{}
	}
	dns := services.Addr()
	for range dnsHost {
		dns = dns.Next()
	}
	if !services.Contains(dns) {
		return netip.Addr{}
	}
	return dns
}

// validateAddons checks the add-ons. A folder and examples are two sets with a version each, and the cluster keeps one.
func (c *Cluster) validateAddons(f *Faults) {
	a := c.Addons
	if a.Folder != "" && (!cleanPath(a.Folder) || a.Folder == "/") {
		f.add("addons.folder", a.Folder, pathRule+", not the root")
	}
	if a.Folder != "" && len(a.Examples) > 0 {
		f.add("addons.examples", strings.Join(a.Examples, ", "), "none beside addons.folder: put what `quorate addons "+
			"examples` prints into the folder")
	}
	for i, name := range a.Examples {
		at := fmt.Sprintf("addons.examples[%d]", i)
		oneOf(f, at, name, AddonExamples...)
		if slices.Contains(a.Examples[:i], name) {
			f.add(at, name, "each name once")
		}
	}
	if slices.Contains(a.Examples, CoreDNS) && len(c.Network.ServiceCIDRs) > 0 && !DNSAddress(c).IsValid() {
		f.add("network.serviceCIDRs[0]", c.Network.ServiceCIDRs[0], fmt.Sprintf("with the example %s, a range whose "+
			"address number %d can be the DNS's", CoreDNS, dnsHost))
	}
	switch {
	case len(a.Examples) == 0 && a.Version != 0:
		f.add("addons.version", strconv.Itoa(a.Version), "none without addons.examples: a folder has its version in its "+
			"file version")
	case len(a.Examples) > 0 && a.Version < 1:
		f.add("addons.version", strconv.Itoa(a.Version), "1 or more")
	}
}
