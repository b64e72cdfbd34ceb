package localgce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
)

// freeHostRange refuses a range that any route or address of the host touches: two owners of one range would take each
// other's packets. A project whose process died is no owner: what it left on the range is removed, and its files stay.
func freeHostRange(ctx context.Context, c Config) error {
	taken, err := hostRangeTaken(ctx, c)
	if err != nil || taken == nil {
		return err
	}
	state, ok := namedByLink(taken.device)
	if ok {
		if err := namesFor(state).sweepDead(ctx); err != nil && !errors.Is(err, ErrUp) {
			return fmt.Errorf("clean up after the project of %s, whose process has died: %w", state, err)
		}
		if taken, err = hostRangeTaken(ctx, c); err != nil || taken == nil {
			return err
		}
	}
	err = fmt.Errorf("subnet %s: the range is in use on this machine: %s on %s; choose a free one with --subnet",
		c.Subnet, taken.prefix, taken.device)
	if ok {
		err = fmt.Errorf("%w, or end the project of %s", err, state)
	}
	return err
}

// hostRangeTaken is a route of the host that touches the range, or nil.
func hostRangeTaken(ctx context.Context, c Config) (*hostPrefix, error) {
	routes, err := hostPrefixes(ctx)
	if err != nil {
		return nil, err
	}
	mine := []netip.Prefix{c.Subnet, netip.PrefixFrom(c.hostAddress(), 32)}
	for _, r := range routes {
		for _, m := range mine {
			if r.prefix.Bits() > 0 && r.prefix.Overlaps(m) {
				return &r, nil
			}
		}
	}
	return nil, nil
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
