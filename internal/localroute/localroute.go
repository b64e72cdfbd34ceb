// Package localroute makes this machine take packets for addresses that no interface of it has, by routes of the
// kernel's table local. A passthrough load balancer leaves the endpoint's address in the packets that it delivers, and
// a VM without such a route drops them. Google's guest agent makes the same routes with the same mark, so that either
// knows the other's as its own.
//
// It says what there is and changes it. Which addresses are wanted is the caller's to decide.
package localroute

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/replica"
)

// guestAgent marks the routes: it is the protocol number of Google's guest agent.
const guestAgent netlink.RouteProtocol = 66

// Table is the table local of the network namespace in which its methods are called. They may be called concurrently.
type Table struct{}

// List are the routes by which this machine takes packets for its own, whoever made them.
func (Table) List() ([]replica.LocalRoute, error) {
	var out []replica.LocalRoute
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := list(family)
		if err != nil {
			return nil, fmt.Errorf("list the local routes: %w", err)
		}
		for _, r := range routes {
			if prefix, ok := prefixOf(r.Dst); ok && r.Type == unix.RTN_LOCAL {
				out = append(out, replica.LocalRoute{Prefix: prefix, Marked: r.Protocol == guestAgent})
			}
		}
	}
	return out, nil
}

// listTries is how often a listing is begun again that a change of the routes has interrupted, and that is not whole.
const listTries = 5

func list(family int) (routes []netlink.Route, err error) {
	for range listTries {
		routes, err = netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_LOCAL},
			netlink.RT_FILTER_TABLE)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return routes, err
}

// Add makes a marked route at the interface with a hardware address, as `ip route add to local PREFIX dev NIC proto 66`
// does. That there is one is no error.
func (Table) Add(mac string, prefix netip.Prefix) error {
	index, err := deviceWith(mac)
	if err != nil {
		return err
	}
	route := marked(prefix)
	route.LinkIndex = index
	if err := netlink.RouteAdd(route); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add the local route for %s: %w", prefix, err)
	}
	return nil
}

// Remove removes a marked route. That there is none is no error.
func (Table) Remove(prefix netip.Prefix) error {
	if err := netlink.RouteDel(marked(prefix)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("remove the local route for %s: %w", prefix, err)
	}
	return nil
}

func marked(prefix netip.Prefix) *netlink.Route {
	return &netlink.Route{
		Dst: &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())},
		// As ip(8) has it for a route of this type.
		Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Protocol: guestAgent,
	}
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	address, ok := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(address.Unmap(), bits), ok
}

// deviceWith is the index of the interface that has a hardware address. Of several it is the oldest: a bridge or a VLAN
// takes its address from the interface below it.
func deviceWith(mac string) (int, error) {
	all, err := net.Interfaces()
	if err != nil {
		return 0, fmt.Errorf("list the interfaces: %w", err)
	}
	slices.SortFunc(all, func(a, b net.Interface) int { return a.Index - b.Index })
	var found []string
	for _, i := range all {
		if address := i.HardwareAddr.String(); address != "" {
			if strings.EqualFold(address, mac) {
				return i.Index, nil
			}
			found = append(found, i.Name+" "+address)
		}
	}
	return 0, fmt.Errorf("no interface has the hardware address %s, which the metadata server names; found: %s", mac,
		strings.Join(found, ", "))
}
