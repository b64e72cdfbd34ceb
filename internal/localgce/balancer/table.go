package balancer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// table is a choice with what it is for.
type table struct {
	key
	choice
}

func (c choice) of(k key) table { return table{k, c} }

// mark is an address's: its last two bytes, which are not those of another VM in a range of /16 or less.
func mark(a netip.Addr) int {
	b := a.As4()
	return int(b[2])<<8 | int(b[3])
}

// firstTable is the number of the routing table for mark 0; those below are the system's.
const firstTable = 1000

// routes make an address's mark lead to it, whatever the packet's destination is.
func routes(a netip.Addr) []string {
	m := mark(a)
	return []string{fmt.Sprintf("route replace default via %s dev br0 table %d", a, firstTable+m),
		fmt.Sprintf("rule add fwmark %d lookup %d", m, firstTable+m)}
}

// render is the script that makes the kernel balance as the tables say, in one transaction. A connection has its mark
// from its first packet on, and gets another where its endpoint is not kept any more: that one answers with a reset. A
// packet that nobody gets is dropped. TCP that concerns no balanced or external address is not tracked.
func render(tables []table, external []External) string {
	var chains, rules strings.Builder
	var balanced []string
	for n, t := range tables {
		balanced = append(balanced, t.address.String())
		port := ""
		if t.port != 0 {
			port = fmt.Sprintf("tcp dport %d ", t.port)
		}
		fmt.Fprintf(&rules, "\t\tip daddr %s %sgoto service%d\n", t.address, port, n)
		fmt.Fprintf(&chains, "\tchain service%d {\n%s%s\t}\n", n, resets("ct status dnat"), t.rules())
	}
	out := "add table ip balancer\ndelete table ip balancer\n"
	if len(tables)+len(external) == 0 {
		return out
	}
	tracked := slices.Clone(balanced)
	for _, e := range external {
		tracked = append(tracked, e.Address.String(), e.To.String())
		fmt.Fprintf(&rules, "\t\tip daddr %s %s", e.Address, resets("ct state established ct status & dnat == 0")[2:])
	}
	if len(balanced) > 0 {
		fmt.Fprintf(&rules, "\t\tip daddr %s drop\n", set(balanced))
	}
	return out + "table ip balancer {\n" + chains.String() +
		"\tchain untracked {\n\t\ttype filter hook prerouting priority raw; policy accept;\n" +
		fmt.Sprintf("\t\tmeta l4proto tcp ip saddr != %s ip daddr != %s notrack\n\t}\n", set(tracked), set(tracked)) +
		"\tchain in {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n" + rules.String() + "\t}\n" +
		translations(external) + "}\n"
}

// resets answers what has a state with a reset, as a VM does that hears of a connection which was another's: the
// address is balanced by now, or a VM's own.
func resets(state string) string { return "\t\t" + state + " meta l4proto tcp reject with tcp reset\n" }

// translations lead each external address to its VM. A VM that calls its own hears itself.
func translations(external []External) string {
	if len(external) == 0 {
		return ""
	}
	var to, back strings.Builder
	for _, e := range external {
		fmt.Fprintf(&to, "\t\tip daddr %s dnat to %s\n", e.Address, e.To)
		fmt.Fprintf(&back, "\t\tip saddr %s ip daddr %s masquerade\n", e.To, e.To)
	}
	return "\tchain to {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n" + to.String() + "\t}\n" +
		"\tchain back {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n" + back.String() + "\t}\n"
}

func set(list []string) string { return "{ " + strings.Join(list, ", ") + " }" }

// rules are those of a service's chain.
func (t table) rules() string {
	if len(t.kept) == 0 {
		return "\t\tdrop\n"
	}
	var kept, in []string
	for _, a := range t.kept {
		kept = append(kept, fmt.Sprint(mark(a)))
	}
	for n, a := range t.in {
		in = append(in, fmt.Sprintf("%d : %d", n, mark(a)))
	}
	out := fmt.Sprintf("\t\tct mark != { %s } ct mark set 0\n", strings.Join(kept, ", "))
	if len(in) > 0 {
		out += fmt.Sprintf("\t\tct mark 0 ct mark set numgen random mod %d map { %s }\n", len(in), strings.Join(in, ", "))
	}
	return out + "\t\tct mark 0 drop\n\t\tmeta mark set ct mark\n"
}
