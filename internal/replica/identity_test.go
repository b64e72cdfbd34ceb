package replica_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

func TestAPlaceReadsBackAsItIsSpelled(t *testing.T) {
	for _, p := range []replica.Place{
		{Zone: "us-central1-a", Name: "master-1"}, {Zone: "z", Name: "m"},
		{Zone: "z", Name: "m" + strings.Repeat("-", 61) + "1"},
	} {
		if got, ok := replica.ParsePlace(p.String()); !ok || got != p || !p.Valid() {
			t.Errorf("%s: %v, %t, valid %t", p, got, ok, p.Valid())
		}
	}
}

// Each would stand in the hosts file of every master, in a path of the record, or before a person, as something else.
func TestAPlaceThatGCECannotHaveIsNone(t *testing.T) {
	for _, s := range []string{
		"", ".", "z", "z.", ".m", "z.m.n", "z.m\tother", "z.m other", "z.m\n10.0.0.1", "z\t.m", "z.m\x1b[2J", "z.m\x00",
		"z.M", "Z.m", "z.1m", "1z.m",
		"z.-m", "z.m-", "z.m_1", "z.m/1", "../z.m", "z.mä", "z.m#", "z.m" + strings.Repeat("1", 63), "z.m\n", "\nz.m",
	} {
		if p, ok := replica.ParsePlace(s); ok || p != (replica.Place{}) {
			t.Errorf("%q is a place: %v", s, p)
		}
	}
}

func TestWhatFollowsFromWhoAReplicaIs(t *testing.T) {
	id := replica.Identity{Place: replica.Place{Zone: "us-central1-a", Name: "m"}, InstanceID: "7",
		Project: "example.com:p"}
	if got := id.Region() + " " + id.MemberName() + " " +
		id.DNSName("prod"); got != "us-central1 us-central1-a.m.7 m.us-central1-a.prod.quorate.internal" {
		t.Error(got)
	}
	if id.Address().IsValid() {
		t.Errorf("without an address it is %s", id.Address())
	}
	id.Addresses = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
	if id.Address() != id.Addresses[0] {
		t.Errorf("the address is %s", id.Address())
	}
	if got := fmt.Sprint(id.HostNames()); got != "[m m.c.p.example.com.internal "+
		"m.us-central1-a.c.p.example.com.internal]" {
		t.Error(got)
	}
	if id.Project = ""; len(id.HostNames()) != 1 {
		t.Errorf("without a project: %v", id.HostNames())
	}
}
