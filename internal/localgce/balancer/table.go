package balancer

import (
	"fmt"
	"net/netip"
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
// packet that nobody gets is dropped. What concerns no balanced address is not tracked.
func render(tables []table) string {
	var chains, rules strings.Builder
	var balanced []string
	for n, t := range tables {
		balanced = append(balanced, t.address.String())
		port := ""
		if t.port != 0 {
			port = fmt.Sprintf("tcp dport %d ", t.port)
		}
		fmt.Fprintf(&rules, "\t\tip daddr %s %sgoto service%d\n", t.address, port, n)
		fmt.Fprintf(&chains, "\tchain service%d {\n%s\t}\n", n, t.rules())
	}
	out := "add table ip balancer\ndelete table ip balancer\n"
	if len(tables) == 0 {
		return out
	}
	set := "{ " + strings.Join(balanced, ", ") + " }"
	return out + "table ip balancer {\n" + chains.String() +
		"\tchain untracked {\n\t\ttype filter hook prerouting priority raw; policy accept;\n" +
		fmt.Sprintf("\t\tip saddr != %s ip daddr != %s notrack\n\t}\n", set, set) +
		"\tchain in {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n" + rules.String() +
		fmt.Sprintf("\t\tip daddr %s drop\n\t}\n}\n", set)
}

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
