package certs

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// sans says which subject alternative names a row has. Both lists come sorted and without repeats, so that two of them
// can be compared.
type sans func(id replica.Identity, c *replica.Cluster) ([]string, []netip.Addr, error)

// loopback are the addresses by which processes of one replica reach each other.
var loopback = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

func noSANs(replica.Identity, *replica.Cluster) ([]string, []netip.Addr, error) { return nil, nil, nil }

// replicaOnly is for etcd's peers: etcd compares a peer's source address with them, and loopback would let any process
// on any replica pass that check.
func replicaOnly(id replica.Identity, c *replica.Cluster) ([]string, []netip.Addr, error) {
	if len(id.Addresses) == 0 {
		return nil, nil, fmt.Errorf("the replica %s has no address", id.Place)
	}
	return sorted(append(id.HostNames(), id.DNSName(c.Name))), sortedAddresses(id.Addresses), nil
}

func replicaAndLoopback(id replica.Identity, c *replica.Cluster) ([]string, []netip.Addr, error) {
	names, addresses, err := replicaOnly(id, c)
	if err != nil {
		return nil, nil, err
	}
	return sorted(append(names, "localhost")), sortedAddresses(append(addresses, loopback...)), nil
}

// replicaAndCluster is for the apiserver, which is reached by every name that the cluster has. An ephemeral external
// address can be in none of its sources: GCE may give it to a stranger tomorrow, whom the certificate would then vouch
// for.
func replicaAndCluster(id replica.Identity, c *replica.Cluster) ([]string, []netip.Addr, error) {
	names, addresses, err := replicaAndLoopback(id, c)
	if err != nil {
		return nil, nil, err
	}
	names = append(names, "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc."+c.Network.DNSDomain)
	names = append(names, c.Endpoint.DNSNames...)
	addresses = append(addresses, c.EndpointAddresses()...)
	for i, s := range c.Network.ServiceCIDRs {
		first, err := firstServiceAddress(s)
		if err != nil {
			return nil, nil, fmt.Errorf("network.serviceCIDRs[%d]: %w", i, err)
		}
		addresses = append(addresses, first)
	}
	return sorted(names), sortedAddresses(addresses), nil
}

// firstServiceAddress is the address that the apiserver gives to the service "kubernetes": the range's base plus one,
// as a whole number. Adding one to the last octet, as kube-up did, is wrong for a range whose base ends in 255.
func firstServiceAddress(cidr string) (netip.Addr, error) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("found %q, a range such as 10.96.0.0/12 is allowed", cidr)
	}
	first := p.Masked().Addr().Next()
	if !p.Contains(first) {
		return netip.Addr{}, fmt.Errorf("found %q, which has no room for a service", cidr)
	}
	return first, nil
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

func sortedAddresses(addresses []netip.Addr) []netip.Addr {
	addresses = slices.Clone(addresses)
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}
