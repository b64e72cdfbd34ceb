package localroute_test

import (
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/quorate/quorate/internal/localroute"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/replica"
)

const mac = "42:01:0a:f0:00:02"

// inNamespace runs the calling test again in a network namespace of its own, with one interface.
func inNamespace(t *testing.T, inside func(*testing.T)) {
	realtest.Inside(t, func(t *testing.T) {
		addInterface(t, "eth0", mac)
		inside(t)
	})
}

func addInterface(t *testing.T, name, mac string) {
	t.Helper()
	address, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, HardwareAddr: address}, PeerName: name + "-peer"}
	if err := netlink.LinkAdd(link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{name, name + "-peer", "lo"} {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func list(t *testing.T, p netip.Prefix) []replica.LocalRoute {
	t.Helper()
	all, err := localroute.Table{}.List()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(r replica.LocalRoute) bool { return r.Prefix != p })
}

func TestARouteMakesAnAddressLocalUntilItIsRemoved(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		for _, text := range []string{"203.0.113.7/32", "203.0.113.64/28", "2600:1900:4000:1::7/128"} {
			p := netip.MustParsePrefix(text)
			if got := list(t, p); len(got) != 0 {
				t.Fatalf("before: %v", got)
			}
			if err := reach(t, p.Addr()); err == nil {
				t.Fatalf("%s is local before its route is made", p)
			}
			for range 2 { // again is no error
				if err := (localroute.Table{}).Add(mac, p); err != nil {
					t.Fatal(err)
				}
			}
			if got := list(t, p); len(got) != 1 || !got[0].Marked {
				t.Errorf("%s: got %v, want one marked route", p, got)
			}
			if err := reach(t, p.Addr()); err != nil {
				t.Errorf("%s is not local: %v", p, err)
			}
			for range 2 {
				if err := (localroute.Table{}).Remove(p); err != nil {
					t.Fatal(err)
				}
			}
			if got := list(t, p); len(got) != 0 {
				t.Errorf("after its removal: %v", got)
			}
		}
	})
}

// reach connects to an address at which this machine listens with all that it takes for its own.
func reach(t *testing.T, a netip.Addr) error {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	c, err := net.DialTimeout("tcp", netip.AddrPortFrom(a, port).String(), time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

// Google's guest agent runs where quorate was installed on a stock image: each must take the other's routes for its
// own.
func TestARouteIsAsTheGuestAgentMakesIt(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		ours, theirs := netip.MustParsePrefix("203.0.113.7/32"), netip.MustParsePrefix("203.0.113.8/32")
		if err := (localroute.Table{}).Add(mac, ours); err != nil {
			t.Fatal(err)
		}
		ip(t, "route add to local 203.0.113.8/32 scope host dev eth0 proto 66")
		shown := ip(t, "route list table local type local scope host dev eth0 proto 66")
		if want := "local 203.0.113.7 \nlocal 203.0.113.8 \n"; shown != want {
			t.Errorf("the guest agent's question finds %q, want %q", shown, want)
		}
		if got := list(t, theirs); len(got) != 1 || !got[0].Marked {
			t.Errorf("the guest agent's route: got %v, want one that is marked", got)
		}
		if err := (localroute.Table{}).Remove(theirs); err != nil || len(list(t, theirs)) != 0 {
			t.Errorf("the guest agent's route is not removed: %v", err)
		}
	})
}

func ip(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v\n%s", line, err, out)
	}
	return string(out)
}

func TestRoutesOfOthersAreListedAndNotRemoved(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		p := netip.MustParsePrefix("203.0.113.7/32")
		ip(t, "addr add 203.0.113.7/32 dev lo")
		if got := list(t, p); len(got) != 1 || got[0].Marked {
			t.Errorf("an address of loopback: got %v, want one unmarked route", got)
		}
		if err := (localroute.Table{}).Remove(p); err != nil || len(list(t, p)) != 1 {
			t.Errorf("removed: %v, left %v", err, list(t, p))
		}
	})
}

func TestAnUnknownHardwareAddressIsNamed(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		err := localroute.Table{}.Add("42:01:0a:f0:00:99", netip.MustParsePrefix("203.0.113.7/32"))
		if err == nil || !strings.Contains(err.Error(), "42:01:0a:f0:00:99") ||
			!strings.Contains(err.Error(), "eth0 "+mac) {
			t.Errorf("got %v, want an error that names what was asked for and what there is", err)
		}
	})
}
