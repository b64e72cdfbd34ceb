package localgce

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
)

// checkHostRange refuses a range that any route or address of the host touches: two owners of one range would take each other's
// packets.
func checkHostRange(ctx context.Context, c Config) error {
	routes, err := hostPrefixes(ctx)
	if err != nil {
		return err
	}
	mine := []netip.Prefix{c.Subnet, netip.PrefixFrom(c.hostAddress(), 32)}
	for _, r := range routes {
		for _, m := range mine {
			if r.prefix.Bits() > 0 && r.prefix.Overlaps(m) {
				return fmt.Errorf("subnet %s: the range is in use on this machine: %s on %s; choose a free one with --subnet", c.Subnet, r.prefix, r.device)
			}
		}
	}
	return nil
}

type hostPrefix struct {
	prefix netip.Prefix
	device string
}

// hostPrefixes are the destinations of all IPv4 routes of the host, which its own addresses are part of (table local).
func hostPrefixes(ctx context.Context) ([]hostPrefix, error) {
	out, err := run(ctx, "ip", "-j", "-4", "route", "show", "table", "all")
	if err != nil {
		return nil, err
	}
	var routes []struct {
		Dst string `json:"dst"`
		Dev string `json:"dev"`
	}
	if err := json.Unmarshal(out, &routes); err != nil {
		return nil, fmt.Errorf("read the host's routes: %w", err)
	}
	var prefixes []hostPrefix
	for _, r := range routes {
		if p, err := netip.ParsePrefix(r.Dst); err == nil {
			prefixes = append(prefixes, hostPrefix{p.Masked(), r.Dev})
		} else if a, err := netip.ParseAddr(r.Dst); err == nil {
			prefixes = append(prefixes, hostPrefix{netip.PrefixFrom(a, 32), r.Dev})
		}
	}
	return prefixes, nil
}
