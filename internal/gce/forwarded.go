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
	MAC               string   `json:"mac"`
	ForwardedIPs      []string `json:"forwardedIps"`
	ForwardedIPv6s    []string `json:"forwardedIpv6s"`
	IPAliases         []string `json:"ipAliases"`
	TargetInstanceIPs []string `json:"targetInstanceIps"`
}

// WatchInterfaces calls changed with the VM's interfaces at once, and again when what is forwarded to them changes, as
// Watch does for an attribute.
func (m *Metadata) WatchInterfaces(ctx context.Context, changed func([]replica.Interface)) error {
	var last []replica.Interface
	return m.watch(ctx, interfacesFolder, url.Values{"recursive": {"true"}, "alt": {"json"}}, func(body string) error {
		now, err := parseForwarding(body)
		if err != nil {
			return err
		}
		if last == nil || !slices.EqualFunc(last, now, sameForwarding) {
			changed(now)
		}
		last = now
		return nil
	})
}

func sameForwarding(a, b replica.Interface) bool {
	return a.MAC == b.MAC && slices.Equal(a.Forwarded, b.Forwarded) && slices.Equal(a.Others, b.Others)
}

func parseForwarding(body string) ([]replica.Interface, error) {
	var nics []forwarding
	if err := json.Unmarshal([]byte(body), &nics); err != nil {
		return nil, fmt.Errorf("%s: %w", interfacesFolder, err)
	}
	out := []replica.Interface{}
	for i, nic := range nics {
		parsed := replica.Interface{MAC: nic.MAC}
		for _, field := range []struct {
			key    string
			values []string
			into   *[]netip.Prefix
		}{
			{"forwarded-ips", nic.ForwardedIPs, &parsed.Forwarded},
			{"forwarded-ipv6s", nic.ForwardedIPv6s, &parsed.Forwarded},
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

// parseForwarded reads an address, with or without its range. The VM's own loopback and link-local addresses, the
// metadata server's among them, are no load balancer's.
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
	a := p.Addr()
	ok := a.Zone() == "" && p.Bits() > 0 && !a.IsUnspecified() && !a.IsLoopback() && !a.IsLinkLocalUnicast() &&
		!a.IsMulticast()
	return p.Masked(), ok
}
