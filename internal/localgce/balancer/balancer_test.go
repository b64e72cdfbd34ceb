package balancer

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestHealthTakesOutAfterTwoMissesAndInAfterOneSuccess(t *testing.T) {
	h, all := newHealth(), []int{1, 2, 3}
	members := func(running ...int) ([]int, bool) { return h.members(all, running) }

	if got, open := members(1, 2, 3); !slices.Equal(got, all) || !open {
		t.Errorf("before the first probe all that run get connections: %v", got)
	}
	h.observe(1, true)
	if got, open := members(1, 2, 3); !slices.Equal(got, []int{1}) || open {
		t.Errorf("one success is enough: %v", got)
	}
	h.observe(1, false)
	h.observe(2, true)
	if got, _ := members(1, 2, 3); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("one miss is forgiven: %v", got)
	}
	h.observe(1, true)
	h.observe(1, false)
	if got, _ := members(1, 2, 3); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("misses that are not consecutive are forgiven: %v", got)
	}
	h.observe(1, false)
	if got, _ := members(1, 2, 3); !slices.Equal(got, []int{2}) {
		t.Errorf("two misses take it out: %v", got)
	}
	h.observe(2, false)
	h.observe(2, false)
	if got, open := members(2, 3); !slices.Equal(got, []int{2, 3}) || !open {
		t.Errorf("with none ready it fails open: %v", got)
	}
	if got, open := members(); len(got) > 0 || open {
		t.Errorf("with none running there is no route: %v", got)
	}
}

func TestBalancerKeepsTheGroupForWhatStays(t *testing.T) {
	b := New("fabric", netip.MustParseAddr("10.240.0.100"))
	one := Target{Index: 1, Address: netip.MustParseAddr("10.240.0.2"), Running: true}
	two := Target{Index: 2, Address: netip.MustParseAddr("10.240.0.3"), Running: true}

	first := strings.Join(b.commands([]Target{one, two}, false), "\n")
	want := `nexthop replace id 1 via 10.240.0.2 dev br0
nexthop replace id 2 via 10.240.0.3 dev br0
nexthop replace id 1000 group 1/2 type resilient buckets 64 idle_timer 35
route replace 10.240.0.100/32 nhid 1000`
	if first != want {
		t.Errorf("first:\n%s\nwant:\n%s", first, want)
	}
	b.current = []Target{one, two}
	if s := strings.Join(b.commands([]Target{one}, false), "\n"); strings.Contains(s, "del") {
		t.Errorf("the group is made anew where a member leaves, which breaks the others' connections:\n%s", s)
	}
	if got := b.commands(nil, false); !slices.Equal(got, []string{"route del 10.240.0.100/32 nhid 1000",
		"nexthop del id 1000"}) {
		t.Errorf("nobody left: %q", got)
	}
}
