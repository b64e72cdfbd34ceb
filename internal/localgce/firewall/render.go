package firewall

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// begun lets through what belongs to something that was let in, or goes back to a VM that began it. A TCP segment that
// opens no connection is of one that there is: the fabric does not track them all. What TCP needs to know of its path
// comes as ICMP.
const begun = `		tcp flags & (syn | ack) != syn accept
		icmp type { echo-reply, destination-unreachable, time-exceeded, parameter-problem } accept
		meta l4proto != tcp ct state established,related accept
`

// Render is the script that puts a state in force, in one transaction of nft's.
func Render(s State) string {
	out := "add table ip firewall\ndelete table ip firewall\n"
	vms := addressesOf(s.VMs, func(instance.VM) bool { return true })
	if !s.Ruled || len(vms) == 0 {
		return out
	}
	var rules strings.Builder
	for _, r := range inOrder(s.Rules) {
		rules.WriteString(ruleText(r, s.VMs))
	}
	return out + "table ip firewall {\n\tchain in {\n" + begun +
		"\t\trt ip nexthop != " + set(vms) + " accept\n" + rules.String() + "\t\tdrop\n\t}\n" +
		"\tchain forwarded { type filter hook forward priority filter; policy accept; goto in; }\n" +
		"\tchain sent { type filter hook output priority filter; policy accept; goto in; }\n}\n"
}

// inOrder are the rules as they are gone through: the first that a packet fits counts.
func inOrder(rules []instance.FirewallRule) []instance.FirewallRule {
	denies := func(r instance.FirewallRule) int {
		if r.Deny {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(rules), func(a, b instance.FirewallRule) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(denies(a), denies(b)),
			cmp.Compare(a.Name, b.Name))
	})
}

// ruleText are nft's lines for a rule: one for each protocol. A rule that no VM is a target of, or that nothing can
// come from, has none.
func ruleText(r instance.FirewallRule, vms []instance.VM) string {
	sources := r.Sources
	for _, a := range addressesOf(vms, func(v instance.VM) bool { return carries(v, r.SourceTags, r.SourceAccounts) }) {
		sources = append(slices.Clip(sources), netip.PrefixFrom(a, a.BitLen()))
	}
	targets := addressesOf(vms, func(v instance.VM) bool {
		return len(r.TargetTags)+len(r.TargetAccounts) == 0 || carries(v, r.TargetTags, r.TargetAccounts)
	})
	from := widest(sources)
	if len(from) == 0 || len(targets) == 0 {
		return ""
	}
	verdict := "accept"
	if r.Deny {
		verdict = "drop"
	}
	var out strings.Builder
	for _, p := range r.Ports {
		fmt.Fprintf(&out, "\t\trt ip nexthop %s ip saddr %s%s %s comment %q\n", set(targets), set(from), portsText(p),
			verdict, r.Name)
	}
	return out.String()
}

// protocols are the numbers of those that rules may name.
var protocols = map[string]string{"icmp": "1", "ipip": "4", "tcp": "6", "udp": "17", "esp": "50", "ah": "51",
	"sctp": "132"}

// portsText is a match of a protocol, and of its ports.
func portsText(p instance.Ports) string {
	if p.Protocol == "all" {
		return ""
	}
	number := cmp.Or(protocols[p.Protocol], p.Protocol)
	out := " meta l4proto " + number
	if len(p.Ranges) > 0 {
		out += " th dport { " + strings.Join(p.Ranges, ", ") + " }"
	}
	return out
}

func carries(v instance.VM, tags, accounts []string) bool {
	return slices.ContainsFunc(v.Made.Tags, func(t string) bool { return slices.Contains(tags, t) }) ||
		slices.ContainsFunc(v.Accounts(), func(a string) bool { return slices.Contains(accounts, a) })
}

// addressesOf are the addresses of the VMs that fit, in their order, each once.
func addressesOf(vms []instance.VM, fits func(instance.VM) bool) (out []netip.Addr) {
	for _, v := range vms {
		if v.Address.IsValid() && fits(v) {
			out = append(out, v.Address)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// widest are the ranges without those that lie in others: a set of nft's takes none twice.
func widest(ranges []netip.Prefix) (out []netip.Prefix) {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b netip.Prefix) int {
		return cmp.Or(cmp.Compare(a.Bits(), b.Bits()), a.Addr().Compare(b.Addr()))
	})
	for _, r := range sorted {
		if r.Addr().Is4() && !slices.ContainsFunc(out, func(o netip.Prefix) bool { return o.Contains(r.Addr()) }) {
			out = append(out, r.Masked())
		}
	}
	return out
}

func set[T fmt.Stringer](list []T) string {
	var texts []string
	for _, one := range list {
		texts = append(texts, one.String())
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}
