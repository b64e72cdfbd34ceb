// Package network is a project's network: the fabric's namespace with bridge and filter, the link of each VM, and what
// is cut, slow or silent. All of it is made by the programs ip, tc and nft.
package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/internal/localgce/host"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// filterTables are the fabric's filter. Frames of a silent port are dropped in both directions (the carrier stays, as
// with a broken network further away), packets of a cut pair of addresses are dropped one way each. And as in Google's
// network nobody says that a VM is unreachable: who calls a dead one hears nothing.
const filterTables = `table bridge localgce {
	set silent { type ifname; }
	set pairs { type ipv4_addr . ipv4_addr; }
	chain in {
		type filter hook prerouting priority 0; policy accept;
		iifname @silent drop
		ip saddr . ip daddr @pairs drop
	}
	chain out { type filter hook postrouting priority 0; policy accept; oifname @silent drop; }
}
table ip localgce {
	chain out { type filter hook output priority 0; policy accept; icmp type destination-unreachable drop; }
}
`

// Fabric is the project's network outside the VMs.
type Fabric struct{ conf Config }

// New makes nothing yet.
func New(conf Config) Fabric { return Fabric{conf} }

// Config is what the fabric has to know.
type Config struct {
	// Namespace is the fabric's network namespace, and HostLink the host's end of the link to it.
	Namespace, HostLink string
	// Subnet is the VMs' range.
	Subnet netip.Prefix
	// NoHostRoute leaves the host's network alone.
	NoHostRoute bool
}

// Gateway is the fabric's own address in a range.
func Gateway(subnet netip.Prefix) netip.Addr { return Nth(subnet.Addr(), 1) }

// hostAddress is the host's end of the one link to the fabric: just outside the range.
func hostAddress(subnet netip.Prefix) netip.Addr { return Nth(LastOf(subnet), 2) }

// Port is what the fabric has to know of a VM.
type Port struct {
	// Index names the fabric's end of the VM's link.
	Index int
	// Namespace is the VM's network namespace.
	Namespace string
	Address   netip.Addr
}

// Create makes the namespace with bridge and filter, and the host's link.
func (f Fabric) Create(ctx context.Context) error {
	ns := f.conf.Namespace
	if _, err := host.Run(ctx, "ip", "netns", "add", ns); err != nil {
		return err
	}
	// Reverse-path filtering is off because the endpoint's replies come from any VM.
	if err := sysctls(ns, "ipv4/ip_forward", "1",
		"ipv4/conf/all/rp_filter", "0", "ipv4/conf/default/rp_filter", "0",
		"ipv4/conf/all/send_redirects", "0", "ipv4/conf/default/send_redirects", "0"); err != nil {
		return err
	}
	lines := []string{"link set lo up"}
	for _, a := range instance.AllProbers() {
		lines = append(lines, fmt.Sprintf("addr add %s/32 dev lo", a))
	}
	if err := IP(ctx, ns, append(lines,
		fmt.Sprintf("link add name br0 mtu %d address %s type bridge", instance.MTU, instance.MAC(Gateway(f.conf.Subnet))),
		fmt.Sprintf("addr add %s/%d dev br0", Gateway(f.conf.Subnet), f.conf.Subnet.Bits()),
		"link set br0 up")...); err != nil {
		return err
	}
	if err := NFT(ctx, ns, filterTables); err != nil {
		return err
	}
	if f.conf.NoHostRoute {
		return nil
	}
	return f.connectHost(ctx)
}

// connectHost makes the host's veth and its route. The caller has checked that the range is free.
func (f Fabric) connectHost(ctx context.Context) error {
	link, host := f.conf.HostLink, hostAddress(f.conf.Subnet)
	if err := IP(ctx, "",
		fmt.Sprintf("link add name %s mtu %d type veth peer name host mtu %d netns %s", link, instance.MTU, instance.MTU,
			f.conf.Namespace),
		fmt.Sprintf("addr add %s/32 dev %s", host, link),
		fmt.Sprintf("link set %s up", link)); err != nil {
		return err
	}
	if err := IP(ctx, f.conf.Namespace, "link set host up", fmt.Sprintf("route add %s/32 dev host",
		host)); err != nil {
		return err
	}
	return IP(ctx, "", fmt.Sprintf("route add %s via %s dev %s onlink src %s", f.conf.Subnet, Gateway(f.conf.Subnet),
		link, host))
}

// portName is the fabric's end of a VM's link.
func portName(index int) string { return fmt.Sprintf("p%d", index) }

// Plug makes a VM's network namespace and its eth0. As on GCE the address has no range (/32), all packets go to the
// gateway, and the gateway's hardware address is always known: a VM never hears from its own kernel that a neighbour is
// gone. That the endpoint's address is local is for the VM to see to: the metadata names it, and without a route for it
// the balancer's packets are dropped.
func (f Fabric) Plug(ctx context.Context, v Port) error {
	ns, p := v.Namespace, portName(v.Index)
	if _, err := host.Run(ctx, "ip", "netns", "add", ns); err != nil {
		return err
	}
	// The endpoint's address becomes local by a route, not by an address: only arp_ignore keeps the VM from answering
	// for it.
	if err := sysctls(ns, "ipv4/conf/all/arp_ignore", "1", "ipv4/conf/default/arp_ignore", "1"); err != nil {
		return err
	}
	if err := IP(ctx, f.conf.Namespace,
		fmt.Sprintf("link add name %s mtu %d type veth peer name eth0 mtu %d address %s netns %s",
			p, instance.MTU, instance.MTU, instance.MAC(v.Address), ns),
		fmt.Sprintf("link set %s master br0 up", p)); err != nil {
		return err
	}
	return IP(ctx, ns, "link set lo up",
		fmt.Sprintf("addr add %s/32 dev lo", instance.MetadataAddress),
		fmt.Sprintf("addr add %s/32 dev eth0", v.Address),
		"link set eth0 up",
		fmt.Sprintf("neigh add %s lladdr %s dev eth0 nud permanent",
			Gateway(f.conf.Subnet), instance.MAC(Gateway(f.conf.Subnet))),
		fmt.Sprintf("route add %s dev eth0 scope link", Gateway(f.conf.Subnet)),
		fmt.Sprintf("route add default via %s dev eth0", Gateway(f.conf.Subnet)))
}

// Silence takes the link down: from now on the VM's kernel answers nobody.
func (f Fabric) Silence(ctx context.Context, v Port) error {
	return IP(ctx, f.conf.Namespace, fmt.Sprintf("link set %s down", portName(v.Index)))
}

// Unplug removes what plug made. The link goes first: a namespace's links would vanish some time after it.
func (f Fabric) Unplug(ctx context.Context, v Port) error {
	var linkErr error
	if f.linkExists(portName(v.Index)) {
		linkErr = IP(ctx, f.conf.Namespace, fmt.Sprintf("link del %s", portName(v.Index)))
	}
	return errors.Join(linkErr, Delete(ctx, v.Namespace))
}

func (f Fabric) linkExists(link string) bool {
	here := false
	err := In(f.conf.Namespace, func() error { here = LinkIsHere(link); return nil })
	return err == nil && here
}

// LinkIsHere says whether the thread's network namespace has a link. /sys/class/net says it of the namespace in which
// /sys was mounted.
func LinkIsHere(link string) bool { return host.Exists("/proc/sys/net/ipv4/conf/" + link) }

// Delete deletes a network namespace. Absent is fine.
func Delete(ctx context.Context, name string) error {
	if _, err := os.Stat(filepath.Join(Folder, name)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err := host.Run(ctx, "ip", "netns", "del", name)
	return err
}

// Isolate takes a VM's link off the bridge for good: nobody hears it and it hears nobody, its address is free for its
// successor, and its kernel sees a link that is up.
func (f Fabric) Isolate(ctx context.Context, v Port) error {
	return IP(ctx, f.conf.Namespace, fmt.Sprintf("link set %s nomaster", portName(v.Index)))
}

// Rejoin undoes isolate.
func (f Fabric) Rejoin(ctx context.Context, v Port) error {
	return IP(ctx, f.conf.Namespace, fmt.Sprintf("link set %s master br0", portName(v.Index)))
}

// AddAddress gives a VM an address for itself alone.
func (f Fabric) AddAddress(ctx context.Context, v Port, address netip.Addr) error {
	return IP(ctx, v.Namespace, fmt.Sprintf("addr add %s/32 dev lo", address))
}
