package compute

import (
	"net/netip"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// FirewallRules are the firewall rules that were inserted and are not disabled. ruled: one was inserted at some time.
// From then on they alone count, and those of the project's settings are none any more.
func (c *Server) FirewallRules() (list []instance.FirewallRule, ruled bool) {
	for _, o := range c.kept.all() {
		if asked, ok := o.asked.(firewallRequest); ok && !asked.Disabled {
			list = append(list, asked.rule())
		}
	}
	return list, c.kept.hasRuled()
}

// rule is a request that was checked.
func (a firewallRequest) rule() instance.FirewallRule {
	out := instance.FirewallRule{Name: a.Name, Priority: a.priority(), Deny: len(a.Denied) > 0,
		SourceTags: a.SourceTags, SourceAccounts: a.SourceServiceAccounts,
		TargetTags: a.TargetTags, TargetAccounts: a.TargetServiceAccounts}
	for _, text := range a.SourceRanges {
		out.Sources = append(out.Sources, netip.MustParsePrefix(text))
	}
	for _, list := range [][]allowedRequest{a.Allowed, a.Denied} {
		for _, one := range list {
			out.Ports = append(out.Ports, instance.Ports{Protocol: one.Protocol, Ranges: one.Ports})
		}
	}
	return out
}
