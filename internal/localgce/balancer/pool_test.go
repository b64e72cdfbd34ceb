package balancer

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// world is a pool with its service and a clock.
type world struct {
	*pool
	service Service
	now     time.Time
}

// newWorld has VMs a, b and c, which run and are endpoints, with the numbers of the check that quorate makes.
func newWorld(settle time.Duration) *world {
	w := &world{pool: newPool(), now: time.Unix(1e9, 0), service: Service{Settle: settle,
		Forwarding: instance.Forwarding{Address: netip.MustParseAddr("10.240.0.100"), Port: 443, Drain: time.Minute,
			Check: instance.HealthCheck{Interval: time.Second, Timeout: time.Second, Healthy: 1, Unhealthy: 2}}}}
	for n, name := range []string{"a", "b", "c"} {
		w.service.Backends = append(w.service.Backends, Backend{ID: uint64(n + 1), Name: name, Running: true,
			Address: netip.AddrFrom4([4]byte{10, 240, 0, byte(n + 2)})})
	}
	return w
}

// second lets one pass, in which those named pass their check and the others do not.
func (w *world) second(ready ...string) {
	for _, b := range w.update(w.now, w.service) {
		w.observe(b.ID, slices.Contains(ready, b.Name))
	}
	w.update(w.now, w.service)
	w.now = w.now.Add(time.Second)
}

// leave takes a VM out of its group.
func (w *world) leave(name string) {
	w.service.Backends = slices.DeleteFunc(slices.Clone(w.service.Backends),
		func(b Backend) bool { return b.Name == name })
}

// want compares who gets new connections, and who keeps old ones, by the last figures of their addresses.
func (w *world) want(t *testing.T, what, in, kept string, open bool) {
	t.Helper()
	c := w.inForce(w.now, w.service)
	var keeps []string
	for _, a := range c.kept {
		keeps = append(keeps, string(rune('a'+a.As4()[3]-2)))
	}
	if got := strings.Join(c.names, " "); got != in || strings.Join(keeps, " ") != kept || c.open != open {
		t.Errorf("%s: new connections go to %q, old ones stay on %q, open %t; want %q, %q, %t", what, got, keeps, c.open,
			in, kept, open)
	}
}

func TestNewConnectionsGoToThoseThatPassTheirCheck(t *testing.T) {
	w := newWorld(0)
	w.second()
	w.want(t, "before the first success all that run", "a b c", "a b c", true)
	w.second("a")
	w.want(t, "one success is enough", "a", "a b c", false)
	w.second("b")
	w.want(t, "one miss is forgiven", "a b", "a b c", false)
	w.second("a", "b")
	w.second("b")
	w.want(t, "misses that are not in a row are forgiven", "a b", "a b c", false)
	w.second("b")
	w.want(t, "two misses in a row take it out, and its connections stay", "b", "a b c", false)
	w.second()
	w.second()
	w.want(t, "none passes: all that run", "a b c", "a b c", true)
	w.service.Backends[0].Running = false
	w.second()
	w.want(t, "what is off gets no new connection, and nobody tells the old ones", "b c", "a b c", true)
}

func TestAnEndpointThatLeftDrains(t *testing.T) {
	w := newWorld(0)
	w.second("a", "b", "c")
	w.leave("a")
	w.second("b", "c")
	w.want(t, "it has left", "b c", "a b c", false)
	w.now = w.now.Add(time.Minute)
	w.second("b", "c")
	w.want(t, "a minute later", "b c", "b c", false)
	w.leave("b")
	w.leave("c")
	w.second()
	w.want(t, "nobody is left, and none fails open", "", "b c", false)
}

func TestAVMOfTheSameAddressIsAskedAnew(t *testing.T) {
	w := newWorld(0)
	w.second("a", "b", "c")
	w.service.Backends[0].ID = 9
	w.second("b", "c")
	w.want(t, "made anew", "b c", "a b c", false)
	w.second("a", "b", "c")
	w.want(t, "and ready", "a b c", "a b c", false)
}

func TestAChangeSettlesBeforeItIsFelt(t *testing.T) {
	w := newWorld(5 * time.Second)
	for range 6 {
		w.second("a", "b", "c")
	}
	w.want(t, "all", "a b c", "a b c", false)
	w.leave("a")
	for range 4 {
		w.second("b", "c")
	}
	w.want(t, "4 s later", "a b c", "a b c", false)
	w.second("b", "c")
	w.second("b", "c")
	w.want(t, "6 s later", "b c", "a b c", false)
}

func TestTheScriptKeepsConnectionsAndSpreadsNewOnes(t *testing.T) {
	a, b := netip.MustParseAddr("10.240.0.2"), netip.MustParseAddr("10.240.1.3")
	got := render([]table{{key{netip.MustParseAddr("10.240.0.100"), 443}, choice{in: []netip.Addr{b},
		kept: []netip.Addr{a, b}}}}, []External{{Address: netip.MustParseAddr("10.240.0.99"), To: a}})
	for _, want := range []string{"ip daddr 10.240.0.100 tcp dport 443 goto service0", "ct mark != { 2, 259 } ct mark set 0",
		"numgen random mod 1 map { 0 : 259 }", "meta mark set ct mark", "ip daddr { 10.240.0.100 } drop",
		"ip saddr != { 10.240.0.100, 10.240.0.99, 10.240.0.2 }", "ip daddr 10.240.0.99 dnat to 10.240.0.2",
		"ip daddr 10.240.0.99 ct state established ct status & dnat == 0 meta l4proto tcp reject with tcp reset"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := render(nil, nil); strings.Contains(got, "chain") {
		t.Errorf("nothing is balanced: %s", got)
	}
	if got := routes(b); got[0] != "route replace default via 10.240.1.3 dev br0 table 1259" ||
		got[1] != "rule add fwmark 259 lookup 1259" {
		t.Errorf("routes: %q", got)
	}
}
