package replica

import (
	"fmt"
	"net/netip"
)

// minServiceAddresses is kube-apiserver's own limit (options.ServiceIPRange): a smaller range has no room for it.
const minServiceAddresses = 8

// apiServerName is what the cluster's domain stands behind in the apiserver's longest name.
const apiServerName = "kubernetes.default.svc."

// forbiddenRanges hold addresses with a meaning of their own on every VM; 169.254.0.0/16 has the metadata server.
var forbiddenRanges = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3"), netip.MustParsePrefix("::/127"), netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("ff00::/8"),
}

// namedRange is a range of the document that no other may touch.
type namedRange struct {
	field  string
	prefix netip.Prefix
}

func (c *Cluster) validateNetwork(f *Faults) {
	ranges := c.serviceRanges(f)
	if r, ok := parseRange("network.podCIDR", c.Network.PodCIDR, f); ok {
		ranges = append(ranges, r)
	}
	ranges = append(ranges, c.endpointRanges()...)
	for i, a := range ranges {
		for _, b := range ranges[:i] {
			if a.prefix.Overlaps(b.prefix) && !(a.prefix.IsSingleIP() && b.prefix.IsSingleIP()) {
				f.add(a.field, show(a.prefix), "a range or address apart from "+b.field+", "+show(b.prefix))
			}
		}
	}
	if !IsHostName(apiServerName + c.Network.DNSDomain) {
		f.add("network.dnsDomain", c.Network.DNSDomain, HostNameRule+" with "+apiServerName+" before it")
	}
}

// serviceRanges checks the service CIDRs. Their sizes follow kube-apiserver 1.36: at least 8 addresses, IPv6 at most
// a /64; its former limit of 20 bits (a /12 of IPv4) went with the allocation bitmap in 1.35.
func (c *Cluster) serviceRanges(f *Faults) []namedRange {
	const field = "network.serviceCIDRs"
	cidrs := c.Network.ServiceCIDRs
	if len(cidrs) < 1 || len(cidrs) > 2 {
		f.add(field, fmt.Sprintf("%d ranges", len(cidrs)), "one, or two of different families (dual stack)")
	}
	var out []namedRange
	for i, cidr := range cidrs {
		at := fmt.Sprintf("%s[%d]", field, i)
		r, ok := parseRange(at, cidr, f)
		if !ok {
			continue
		}
		out = append(out, r)
		if hostBits := r.prefix.Addr().BitLen() - r.prefix.Bits(); hostBits < 63 && 1<<hostBits < minServiceAddresses {
			f.add(at, cidr, fmt.Sprintf("a range of at least %d addresses", minServiceAddresses))
		}
		if r.prefix.Addr().Is6() && r.prefix.Bits() < 64 {
			f.add(at, cidr, "an IPv6 range of /64 or smaller, as kube-apiserver wants")
		}
	}
	if len(out) == 2 && out[0].prefix.Addr().Is4() == out[1].prefix.Addr().Is4() {
		f.add(field+"[1]", cidrs[1], "a range of the other family than "+cidrs[0])
	}
	return out
}

// endpointRanges are the endpoint's addresses as ranges of one; those that do not parse are faults already.
func (c *Cluster) endpointRanges() []namedRange {
	var out []namedRange
	for _, a := range []struct{ field, value string }{{"endpoint.externalIP", c.Endpoint.ExternalIP},
		{"endpoint.internalIP", c.Endpoint.InternalIP}} {
		if addr, err := netip.ParseAddr(a.value); err == nil && addr.Zone() == "" {
			out = append(out, namedRange{a.field, netip.PrefixFrom(addr, addr.BitLen())})
		}
	}
	return out
}

func parseRange(field, cidr string, f *Faults) (namedRange, bool) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil || p.Addr().Is4In6() {
		f.add(field, cidr, "a range such as 10.96.0.0/12 or fd00:10:96::/112")
		return namedRange{}, false
	}
	if canonical := p.Masked().String(); canonical != cidr {
		f.add(field, cidr, fmt.Sprintf("the range's first address in its shortest form: %s", canonical))
	}
	for _, forbidden := range forbiddenRanges {
		if p.Overlaps(forbidden) {
			f.add(field, cidr, "a range apart from "+forbidden.String()+", whose addresses have a meaning of their own")
		}
	}
	return namedRange{field, p.Masked()}, true
}

func show(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
