package network

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/quorate/quorate/internal/localgce/host"
)

// HostRangeTaken is a route of the host that touches the range, or nil.
func HostRangeTaken(ctx context.Context, c Config) (*HostPrefix, error) {
	routes, err := hostPrefixes(ctx)
	if err != nil {
		return nil, err
	}
	mine := []netip.Prefix{c.Subnet, netip.PrefixFrom(hostAddress(c.Subnet), 32)}
	for _, r := range routes {
		for _, m := range mine {
			if r.Prefix.Bits() > 0 && r.Prefix.Overlaps(m) {
				return &r, nil
			}
		}
	}
	return nil, nil
}

// HostPrefix is the destination of a route of the host.
type HostPrefix struct {
	Prefix netip.Prefix
	Device string
}

// hostPrefixes are the destinations of all IPv4 routes of the host, which its own addresses are part of (table local).
func hostPrefixes(ctx context.Context) ([]HostPrefix, error) {
	out, err := host.Run(ctx, "ip", "-j", "-4", "route", "show", "table", "all")
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
	var prefixes []HostPrefix
	for _, r := range routes {
		if p, err := netip.ParsePrefix(r.Dst); err == nil {
			prefixes = append(prefixes, HostPrefix{p.Masked(), r.Dev})
		} else if a, err := netip.ParseAddr(r.Dst); err == nil {
			prefixes = append(prefixes, HostPrefix{netip.PrefixFrom(a, 32), r.Dev})
		}
	}
	return prefixes, nil
}
