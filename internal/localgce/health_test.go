package localgce

import (
	"context"
	"fmt"
	"net/netip"
	"os"
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
	conf, err := Config{State: "/state"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{fabric: fabric{conf: conf}}
	one := target{index: 1, address: netip.MustParseAddr("10.240.0.2"), running: true}
	two := target{index: 2, address: netip.MustParseAddr("10.240.0.3"), running: true}

	first := strings.Join(b.commands([]target{one, two}, false), "\n")
	want := `nexthop replace id 1 via 10.240.0.2 dev br0
nexthop replace id 2 via 10.240.0.3 dev br0
nexthop replace id 1000 group 1/2 type resilient buckets 64 idle_timer 35
route replace 10.240.0.100/32 nhid 1000`
	if first != want {
		t.Errorf("first:\n%s\nwant:\n%s", first, want)
	}
	b.current = []target{one, two}
	if s := strings.Join(b.commands([]target{one}, false), "\n"); strings.Contains(s, "del") {
		t.Errorf("the group is made anew where a member leaves, which breaks the others' connections:\n%s", s)
	}
	if got := b.commands(nil, false); !slices.Equal(got, []string{"route del 10.240.0.100/32 nhid 1000",
		"nexthop del id 1000"}) {
		t.Errorf("nobody left: %q", got)
	}
}

func TestNamesFitTheKernel(t *testing.T) {
	n := namesFor("/some/where")
	if len(n.hostLink()) > 15 {
		t.Errorf("link name %s has more than 15 characters", n.hostLink())
	}
	if n == namesFor("/some/where/else") || n.hostLink() == namesFor("/else").hostLink() {
		t.Error("two folders have one name")
	}
	if !n.owns(n.fabric()) || !n.owns(n.vm("a")) || n.owns(n.fabric()+"1") || n.owns("lgce-000000-a") {
		t.Error("a project owns its own namespaces only")
	}
}

func TestALinkIsLookedForInTheThreadsOwnNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	ctx, ns := t.Context(), fmt.Sprintf("lgcetest%d", os.Getpid())
	if _, err := run(ctx, "ip", "netns", "add", ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := deleteNamespace(context.Background(), ns); err != nil {
			t.Error(err)
		}
	})
	if err := ipBatch(ctx, ns, "link add name lgcetest0 type veth peer name lgcetest1"); err != nil {
		t.Fatal(err)
	}
	inside := false
	err := inNamespace(ns, func() error { inside = linkIsHere("lgcetest0"); return nil })
	if err != nil || !inside || linkIsHere("lgcetest0") {
		t.Errorf("inside %v, outside %v, %v", inside, linkIsHere("lgcetest0"), err)
	}
}
