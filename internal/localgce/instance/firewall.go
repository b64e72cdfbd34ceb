package instance

import "net/netip"

// FirewallRule is a rule of the network for what reaches VMs. What leaves them is let out.
type FirewallRule struct {
	Name string
	// Priority: the lowest number goes first, and of one number what denies.
	Priority int
	Deny     bool
	// A packet is of the rule if it is of one of the sources: from one of the ranges, or from a VM with one of the tags
	// or accounts.
	Sources                    []netip.Prefix
	SourceTags, SourceAccounts []string
	// It is for VMs with one of these tags or accounts; without either for all.
	TargetTags, TargetAccounts []string
	Ports                      []Ports
}

// Ports are ports of a protocol.
type Ports struct {
	// Protocol is a name or a number; all: every one.
	Protocol string
	// Ranges are ports, or FROM-TO; none: all.
	Ranges []string
}
