package gce

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

const interfacesFolder = "instance/network-interfaces/"

// forwarding is the part of an interface's metadata that names addresses which are routed to the VM and stand at no
// interface of it.
type forwarding struct {
	MAC string `json:"mac"`
	// ForwardedIPs is a list for each interface, empty where nothing is forwarded. ForwardedIPv6s is left out for an
	// interface without IPv6.
	ForwardedIPs      *[]string `json:"forwardedIps"`
	ForwardedIPv6s    *[]string `json:"forwardedIpv6s"`
	IPAliases         []string  `json:"ipAliases"`
	TargetInstanceIPs []string  `json:"targetInstanceIps"`
}

// WatchInterfaces calls changed with the VM's interfaces at once, and again when what is forwarded to them changes, as
// Watch does for an attribute. An answer of no use is an error for refused, once for each reason; nothing is known of
// the interfaces then but what was said before. It calls one of the two at a time.
func (m *Metadata) WatchInterfaces(ctx context.Context, changed func([]replica.Interface), refused func(error)) error {
	var last []replica.Interface
	said := ""
	return m.watch(ctx, interfacesFolder, url.Values{"recursive": {"true"}, "alt": {"json"}}, func(body string) error {
		now, err := parseForwarding(body)
		if err != nil {
			if said != err.Error() {
				refused(err)
			}
			said = err.Error()
			return err
		}
		if last == nil || said != "" || !slices.EqualFunc(last, now, sameForwarding) {
			changed(now)
		}
		last, said = now, ""
		return nil
	})
}

func sameForwarding(a, b replica.Interface) bool {
	return a.MAC == b.MAC && a.SaysIPv6 == b.SaysIPv6 && slices.Equal(a.Forwarded, b.Forwarded) &&
		slices.Equal(a.Others, b.Others)
}

// parseForwarding refuses what is no whole answer: taken for one, it would say that nothing is forwarded any more, and
// every route of the balancer would go. A VM that asks has an interface.
func parseForwarding(body string) ([]replica.Interface, error) {
	var nics []forwarding
	if err := json.Unmarshal([]byte(body), &nics); err != nil {
		return nil, fmt.Errorf("%s: %w", interfacesFolder, err)
	}
	if len(nics) == 0 {
		return nil, fmt.Errorf("%s: found %q; allowed: at least one interface", interfacesFolder, shorten(body))
	}
	out := []replica.Interface{}
	for i, nic := range nics {
		if nic.MAC == "" {
			return nil, fmt.Errorf("%s%d/mac: found nothing; allowed: a hardware address", interfacesFolder, i)
		}
		if nic.ForwardedIPs == nil {
			return nil, fmt.Errorf("%s%d/forwarded-ips: found nothing; allowed: a list, which may be empty",
				interfacesFolder, i)
		}
		parsed := replica.Interface{MAC: nic.MAC, SaysIPv6: nic.ForwardedIPv6s != nil}
		var ipv6s []string
		if parsed.SaysIPv6 {
			ipv6s = *nic.ForwardedIPv6s
		}
		for _, field := range []struct {
			key    string
			values []string
			into   *[]netip.Prefix
		}{
			{"forwarded-ips", *nic.ForwardedIPs, &parsed.Forwarded},
			{"forwarded-ipv6s", ipv6s, &parsed.Forwarded},
			{"ip-aliases", nic.IPAliases, &parsed.Others},
			{"target-instance-ips", nic.TargetInstanceIPs, &parsed.Others},
		} {
			for _, value := range field.values {
				p, ok := parseForwarded(value)
				if !ok {
					return nil, fmt.Errorf("%s%d/%s: found %q; allowed: an address or a range", interfacesFolder, i,
						field.key, shorten(value))
				}
				*field.into = append(*field.into, p)
			}
		}
		out = append(out, parsed)
	}
	return out, nil
}

// The largest ranges that can be forwarded to a VM. No network of Google's is larger, and a route for one would cut the
// VM off from all that is in it.
const leastBits4, leastBits6 = 8, 48

// mappedBits stand before an IPv4 address in the form of an IPv6 address.
const mappedBits = 96

// parseForwarded reads an address, with or without its range. The VM's own loopback and link-local addresses, the
// metadata server's among them, are no load balancer's. An IPv4 address in the form of an IPv6 address is one of IPv4,
// as the kernel lists it.
func parseForwarded(text string) (netip.Prefix, bool) {
	text = strings.TrimSpace(text)
	p, err := netip.ParsePrefix(text)
	if err != nil {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, false
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	least := leastBits6
	if a := p.Addr(); a.Is4In6() {
		p = netip.PrefixFrom(a.Unmap(), max(p.Bits()-mappedBits, 0))
	}
	a := p.Addr()
	if a.Is4() {
		least = leastBits4
	}
	ok := a.Zone() == "" && p.Bits() >= least && !a.IsUnspecified() && !a.IsLoopback() && !a.IsLinkLocalUnicast() &&
		!a.IsMulticast()
	return p.Masked(), ok
}
