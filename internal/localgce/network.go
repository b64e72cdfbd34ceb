package localgce

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

const (
	// mtu is GCE's default.
	mtu = 1460
	// metadataAddress is the metadata server's, in every VM.
	metadataAddress = "169.254.169.254"
)

// filterTables are the fabric's filter. Frames of a silent port are dropped in both directions (the carrier stays, as
// with a broken network further away), packets of a cut pair of addresses are dropped one way each. And as in Google's
// network nobody says that a VM is unreachable: who calls a dead one hears nothing.
const filterTables = `table bridge localgce {
	set silent { type ifname; }
	set pairs { type ipv4_addr . ipv4_addr; }
	chain in { type filter hook prerouting priority 0; policy accept; iifname @silent drop; ip saddr . ip daddr @pairs drop; }
	chain out { type filter hook postrouting priority 0; policy accept; oifname @silent drop; }
}
table ip localgce {
	chain out { type filter hook output priority 0; policy accept; icmp type destination-unreachable drop; }
}
`

// fabric is the project's network outside the VMs.
type fabric struct {
	names names
	conf  Config
}

// create makes the namespace with bridge and filter, and the host's link.
func (f fabric) create(ctx context.Context) error {
	ns := f.names.fabric()
	if _, err := run(ctx, "ip", "netns", "add", ns); err != nil {
		return err
	}
	// Reverse-path filtering is off because the endpoint's replies come from any VM.
	if err := sysctls(ns, "ipv4/ip_forward", "1", "ipv4/fib_multipath_hash_policy", "1",
		"ipv4/conf/all/rp_filter", "0", "ipv4/conf/default/rp_filter", "0",
		"ipv4/conf/all/send_redirects", "0", "ipv4/conf/default/send_redirects", "0"); err != nil {
		return err
	}
	if err := ipBatch(ctx, ns, "link set lo up",
		fmt.Sprintf("link add name br0 mtu %d address %s type bridge", mtu, mac(f.conf.gateway())),
		fmt.Sprintf("addr add %s/%d dev br0", f.conf.gateway(), f.conf.Subnet.Bits()),
		"link set br0 up",
		// A port that is never down: without any, the bridge loses its carrier, and with it the kernel forgets the
		// balancer's next hops.
		"link add name stub0 type veth peer name stub1", "link set stub1 master br0 up",
		"link set stub0 up"); err != nil {
		return err
	}
	if err := nft(ctx, ns, filterTables); err != nil {
		return err
	}
	if f.conf.NoHostRoute {
		return nil
	}
	return f.connectHost(ctx)
}

// connectHost makes the host's veth and its route. The caller has checked that the range is free.
func (f fabric) connectHost(ctx context.Context) error {
	link, host := f.names.hostLink(), f.conf.hostAddress()
	if err := ipBatch(ctx, "",
		fmt.Sprintf("link add name %s mtu %d type veth peer name host mtu %d netns %s", link, mtu, mtu,
			f.names.fabric()),
		fmt.Sprintf("addr add %s/32 dev %s", host, link),
		fmt.Sprintf("link set %s up", link)); err != nil {
		return err
	}
	if err := ipBatch(ctx, f.names.fabric(), "link set host up", fmt.Sprintf("route add %s/32 dev host",
		host)); err != nil {
		return err
	}
	return ipBatch(ctx, "", fmt.Sprintf("route add %s via %s dev %s onlink src %s", f.conf.Subnet, f.conf.gateway(),
		link, host))
}

// port is the fabric's end of a VM's link.
func port(index int) string { return fmt.Sprintf("p%d", index) }

// plug makes a VM's network namespace and its eth0. As on GCE the address has no range (/32), all packets go to the
// gateway, and the gateway's hardware address is always known: a VM never hears from its own kernel that a neighbour is
// gone. That the endpoint's address is local is for the VM to see to: the metadata names it, and without a route for it
// the balancer's packets are dropped.
func (f fabric) plug(ctx context.Context, v record) error {
	ns, p := f.names.vm(v.Slot), port(v.Index)
	if _, err := run(ctx, "ip", "netns", "add", ns); err != nil {
		return err
	}
	// The endpoint's address becomes local by a route, not by an address: only arp_ignore keeps the VM from answering
	// for it.
	if err := sysctls(ns, "ipv4/conf/all/arp_ignore", "1", "ipv4/conf/default/arp_ignore", "1"); err != nil {
		return err
	}
	if err := ipBatch(ctx, f.names.fabric(),
		fmt.Sprintf("link add name %s mtu %d type veth peer name eth0 mtu %d address %s netns %s", p, mtu, mtu,
			mac(v.Address), ns),
		fmt.Sprintf("link set %s master br0 up", p)); err != nil {
		return err
	}
	return ipBatch(ctx, ns, "link set lo up",
		fmt.Sprintf("addr add %s/32 dev lo", metadataAddress),
		fmt.Sprintf("addr add %s/32 dev eth0", v.Address),
		"link set eth0 up",
		fmt.Sprintf("neigh add %s lladdr %s dev eth0 nud permanent", f.conf.gateway(), mac(f.conf.gateway())),
		fmt.Sprintf("route add %s dev eth0 scope link", f.conf.gateway()),
		fmt.Sprintf("route add default via %s dev eth0", f.conf.gateway()))
}

// silence takes the link down: from now on the VM's kernel answers nobody.
func (f fabric) silence(ctx context.Context, v record) error {
	return ipBatch(ctx, f.names.fabric(), fmt.Sprintf("link set %s down", port(v.Index)))
}

// unplug removes what plug made. The link goes first: a namespace's links would vanish some time after it.
func (f fabric) unplug(ctx context.Context, v record) error {
	var linkErr error
	if f.linkExists(port(v.Index)) {
		linkErr = ipBatch(ctx, f.names.fabric(), fmt.Sprintf("link del %s", port(v.Index)))
	}
	return errors.Join(linkErr, deleteNamespace(ctx, f.names.vm(v.Slot)))
}

func (f fabric) linkExists(link string) bool {
	here := false
	err := inNamespace(f.names.fabric(), func() error { here = linkIsHere(link); return nil })
	return err == nil && here
}

// linkIsHere says whether the thread's network namespace has a link. /sys/class/net says it of the namespace in which
// /sys was mounted.
func linkIsHere(link string) bool { return exists("/proc/sys/net/ipv4/conf/" + link) }

func deleteNamespace(ctx context.Context, name string) error {
	if _, err := os.Stat(filepath.Join(namespaceFolder, name)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err := run(ctx, "ip", "netns", "del", name)
	return err
}

// mac is GCE's: 42:01 and the address, so that neighbours' caches stay true when a VM is recreated.
func mac(a netip.Addr) string {
	b := a.As4()
	return fmt.Sprintf("42:01:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}
