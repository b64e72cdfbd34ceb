package firewall

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// vms are two masters, and a stranger without an account that has a tag.
func vms() []instance.VM {
	out := []instance.VM{{Name: "a"}, {Name: "b"}, {Name: "s", Made: instance.Made{Tags: []string{"nodes"},
		Shown: map[string]any{"serviceAccounts": []any{}}}}}
	for n := range out {
		out[n].Address = netip.AddrFrom4([4]byte{10, 0, 0, byte(n + 2)})
	}
	return out
}

func ranges(list ...string) (out []netip.Prefix) {
	for _, l := range list {
		out = append(out, netip.MustParsePrefix(l))
	}
	return out
}

func TestRules(t *testing.T) {
	tcp := []instance.Ports{{Protocol: "tcp", Ranges: []string{"443", "2379-2380"}}}
	masters := []string{instance.MastersAccount()}
	const all = "rt ip nexthop { 10.0.0.2, 10.0.0.3, 10.0.0.4 } "
	for name, c := range map[string]struct {
		rules []instance.FirewallRule
		want  []string
	}{
		"no rule lets nobody in": {nil, nil},
		"by account, for an account": {[]instance.FirewallRule{{Name: "r", SourceAccounts: masters, TargetAccounts: masters,
			Ports: tcp}}, []string{"rt ip nexthop { 10.0.0.2, 10.0.0.3 } ip saddr { 10.0.0.2/32, 10.0.0.3/32 } " +
			`meta l4proto 6 th dport { 443, 2379-2380 } accept comment "r"`}},
		"by tag and range, for all": {[]instance.FirewallRule{{Name: "r", SourceTags: []string{"nodes"},
			Sources: ranges("192.168.0.0/16"), Ports: []instance.Ports{{Protocol: "all"}}}},
			[]string{all + `ip saddr { 192.168.0.0/16, 10.0.0.4/32 } accept comment "r"`}},
		"for a tag": {[]instance.FirewallRule{{Name: "r", Sources: ranges("0.0.0.0/0"), TargetTags: []string{"nodes"},
			Ports: []instance.Ports{{Protocol: "icmp"}, {Protocol: "47"}}}},
			[]string{`rt ip nexthop { 10.0.0.4 } ip saddr { 0.0.0.0/0 } meta l4proto 1 accept comment "r"`,
				`rt ip nexthop { 10.0.0.4 } ip saddr { 0.0.0.0/0 } meta l4proto 47 accept comment "r"`}},
		"a range in another counts once": {[]instance.FirewallRule{{Name: "r", Sources: ranges("10.0.0.0/8", "10.0.0.0/24"),
			SourceTags: []string{"nodes"}, Ports: []instance.Ports{{Protocol: "all"}}}},
			[]string{all + `ip saddr { 10.0.0.0/8 } accept comment "r"`}},
		"for nobody that is there, or from nobody": {[]instance.FirewallRule{
			{Name: "r", Sources: ranges("0.0.0.0/0"), TargetTags: []string{"gone"}, Ports: tcp},
			{Name: "r", SourceTags: []string{"gone"}, Ports: tcp}}, nil},
		"the lowest number first, and of one what denies": {[]instance.FirewallRule{
			{Name: "a2", Priority: 2, Sources: ranges("0.0.0.0/0"), Ports: []instance.Ports{{Protocol: "all"}}},
			{Name: "d2", Priority: 2, Deny: true, Sources: ranges("0.0.0.0/0"), Ports: []instance.Ports{{Protocol: "all"}}},
			{Name: "a1", Priority: 1, Sources: ranges("0.0.0.0/0"), Ports: []instance.Ports{{Protocol: "all"}}}},
			[]string{all + `ip saddr { 0.0.0.0/0 } accept comment "a1"`, all + `ip saddr { 0.0.0.0/0 } drop comment "d2"`,
				all + `ip saddr { 0.0.0.0/0 } accept comment "a2"`}},
	} {
		t.Run(name, func(t *testing.T) {
			script := Render(State{Ruled: true, Rules: c.rules, VMs: vms()})
			before, _, _ := strings.Cut(script, "\t\tdrop\n")
			_, rules, found := strings.Cut(before, "rt ip nexthop != { 10.0.0.2, 10.0.0.3, 10.0.0.4 } accept\n")
			want := ""
			for _, line := range c.want {
				want += "\t\t" + line + "\n"
			}
			if !found || rules != want {
				t.Errorf("rendered\n%s\nwant the rules\n%s", script, want)
			}
			checked(t, script)
		})
	}
}

// A project without rules, or without VMs, filters nothing.
func TestWithoutRulesNothingIsFiltered(t *testing.T) {
	open := Render(State{})
	for _, s := range []State{{VMs: vms()}, {Ruled: true}} {
		if got := Render(s); got != open || strings.Contains(got, "chain") {
			t.Errorf("%+v: %s", s, got)
		}
	}
	checked(t, open)
}

// checked has nft read a script, where it can.
func checked(t *testing.T, script string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("nft needs root")
		return
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "nft", "--check", "--file", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("nft: %v\n%s", err, out)
	}
}
