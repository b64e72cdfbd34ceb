package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

const nic0, nic1 = "42:01:0a:f0:00:02", "42:01:0a:f1:00:02"

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func TestDecideRoutes(t *testing.T) {
	t.Parallel()
	forwarded := func(texts ...string) []replica.Interface {
		return []replica.Interface{{MAC: nic0, Forwarded: prefixes(texts...)}}
	}
	marked := func(texts ...string) (out []replica.LocalRoute) {
		for _, p := range prefixes(texts...) {
			out = append(out, replica.LocalRoute{Prefix: p, Marked: true})
		}
		return out
	}
	foreign := func(text string) replica.LocalRoute { return replica.LocalRoute{Prefix: netip.MustParsePrefix(text)} }
	for _, tc := range []struct {
		name       string
		interfaces []replica.Interface
		there      []replica.LocalRoute
		want       string
	}{
		{"nothing is forwarded and nothing is there", forwarded(), nil, "add [] unnamed []"},
		{"a VM becomes a backend", forwarded("203.0.113.7/32"), nil, "add [" + nic0 + " 203.0.113.7/32] unnamed []"},
		{"all is as it has to be", forwarded("203.0.113.7/32"), marked("203.0.113.7/32"), "add [] unnamed []"},
		{"one of two is gone", forwarded("203.0.113.7/32", "203.0.113.8/32"), marked("203.0.113.8/32"),
			"add [" + nic0 + " 203.0.113.7/32] unnamed []"},
		{"a VM is no backend any more", forwarded(), marked("203.0.113.7/32"), "add [] unnamed [203.0.113.7/32]"},
		{"the address changes", forwarded("203.0.113.8/32"), marked("203.0.113.7/32"),
			"add [" + nic0 + " 203.0.113.8/32] unnamed [203.0.113.7/32]"},
		{"an address is not its range", forwarded("203.0.113.0/24"), marked("203.0.113.0/32"),
			"add [" + nic0 + " 203.0.113.0/24] unnamed [203.0.113.0/32]"},
		{"each interface has its own", []replica.Interface{{MAC: nic0, Forwarded: prefixes("203.0.113.7/32")},
			{MAC: nic1, Forwarded: prefixes("10.1.0.9/32")}}, nil,
			"add [" + nic0 + " 203.0.113.7/32 " + nic1 + " 10.1.0.9/32] unnamed []"},
		{"an address that somebody has made local otherwise", forwarded("203.0.113.7/32"),
			[]replica.LocalRoute{foreign("203.0.113.7/32")}, "add [] unnamed []"},
		{"an alias range and a target instance, of Google's agent", []replica.Interface{{MAC: nic0,
			Others: prefixes("10.8.0.0/24", "203.0.113.9/32")}}, marked("10.8.0.0/24", "203.0.113.9/32"),
			"add [] unnamed []"},
		{"an alias range without a route is not ours to make", []replica.Interface{{MAC: nic0,
			Others: prefixes("10.8.0.0/24")}}, nil, "add [] unnamed []"},
		{"the VM's own addresses", forwarded(), []replica.LocalRoute{foreign("127.0.0.0/8"), foreign("10.240.0.2/32")},
			"add [] unnamed []"},
		{"IPv6, of which nothing is said", forwarded(), marked("2600:1900::7/128"), "add [] unnamed []"},
		{"IPv6, which is forwarded no more", []replica.Interface{{MAC: nic0}, {MAC: nic1, SaysIPv6: true}},
			marked("2600:1900::7/128"), "add [] unnamed [2600:1900::7/128]"},
	} {
		c := decideRoutes(tc.interfaces, tc.there)
		var add []string
		for _, w := range c.add {
			add = append(add, w.mac+" "+w.prefix.String())
		}
		if got := fmt.Sprintf("add %v unnamed %v", add, c.unnamed); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// routes is a kernel's table that can refuse.
type routes struct {
	mu   sync.Mutex
	list []replica.LocalRoute
	err  error
	// listErr and removeErr are for the other two calls.
	listErr, removeErr error
}

func (r *routes) List() ([]replica.LocalRoute, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list), r.listErr
}

func (r *routes) Add(_ string, p netip.Prefix) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.list = append(r.list, replica.LocalRoute{Prefix: p, Marked: true})
	}
	return r.err
}

func (r *routes) Remove(p netip.Prefix) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.removeErr == nil {
		r.list = slices.DeleteFunc(r.list, func(l replica.LocalRoute) bool { return l.Prefix == p })
	}
	return r.removeErr
}

func (r *routes) set(err error, list ...replica.LocalRoute) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list, r.err = list, err
}

// metadata says what interfaces holds, and each time that it is sent something.
type metadata struct {
	interfaces chan []replica.Interface
	refusals   chan error
}

// WatchInterfaces implements Interfaces.
func (m *metadata) WatchInterfaces(ctx context.Context, changed func([]replica.Interface), refused func(error)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-m.interfaces:
			changed(now)
		case err := <-m.refusals:
			refused(err)
		}
	}
}

// tracked is a tracker, and the agent's source in it.
func tracked(log *slog.Logger) (*waits.Tracker, *waits.Phased) {
	tracker := waits.New(log, "")
	return tracker, &waits.Phased{Source: tracker.Source("agent", "phase", 0)}
}

// keptRoutes runs Routes until stop is called.
func keptRoutes(t *testing.T, log *slog.Logger, kernel *routes, m *metadata) (tracker *waits.Tracker, stop func()) {
	t.Helper()
	tracker, source := tracked(log)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		NewRoutes(log, source, kernel).Run(ctx, m)
	}()
	return tracker, func() { cancel(); <-ended }
}

// The route is made as soon as the metadata names it, put back when somebody takes it away, and waited for where it
// cannot be made.
func TestTheEndpointsRouteIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kernel, log := &routes{}, &bytes.Buffer{}
		m := &metadata{interfaces: make(chan []replica.Interface)}
		kernel.set(nil, replica.LocalRoute{Prefix: netip.MustParsePrefix("203.0.113.9/32"), Marked: true})
		tracker, stop := keptRoutes(t, slog.New(slog.NewTextHandler(log, nil)), kernel, m)
		there := func(want string) {
			t.Helper()
			synctest.Wait()
			list, _ := kernel.List()
			var got []netip.Prefix
			for _, r := range list {
				got = append(got, r.Prefix)
			}
			if fmt.Sprint(got) != want {
				t.Errorf("the kernel has %v, want %s; the log:\n%s", got, want, log)
			}
		}
		waits := func(want bool, why string) {
			t.Helper()
			all := tracker.All()
			if len(all) > 0 != want || want && (all[0].Name != endpointRouteMissing ||
				!strings.Contains(all[0].Reason, why)) {
				t.Errorf("waits: %+v, want one: %v", all, want)
			}
		}
		time.Sleep(3*routePeriod + time.Millisecond) // from here on the test acts between two looks
		// nothing is removed before the metadata has said what is forwarded
		there("[203.0.113.9/32]")
		m.interfaces <- []replica.Interface{{MAC: nic0, Forwarded: prefixes("203.0.113.7/32")}}
		there("[203.0.113.9/32 203.0.113.7/32]")
		time.Sleep(routeLinger - routePeriod)
		there("[203.0.113.9/32 203.0.113.7/32]") // connections to it may be open
		time.Sleep(2 * routePeriod)
		there("[203.0.113.7/32]")
		if strings.Contains(log.String(), "put back") {
			t.Errorf("a route that was never there is called put back:\n%s", log)
		}
		time.Sleep(routePeriod)
		kernel.set(nil)
		time.Sleep(routePeriod)
		there("[203.0.113.7/32]")
		if !strings.Contains(log.String(), "put back the local route of the endpoint") {
			t.Errorf("nothing says that the route was put back:\n%s", log)
		}
		kernel.set(errors.New("operation not permitted"))
		time.Sleep(routePeriod)
		there("[]")
		waits(true, "operation not permitted")
		kernel.set(nil)
		time.Sleep(routePeriod)
		there("[203.0.113.7/32]")
		waits(false, "")
		m.interfaces <- []replica.Interface{{MAC: nic0}}
		time.Sleep(routeLinger / 2)
		m.interfaces <- []replica.Interface{{MAC: nic0, Forwarded: prefixes("203.0.113.7/32")}}
		synctest.Wait()
		m.interfaces <- []replica.Interface{{MAC: nic0}}
		time.Sleep(routeLinger - routePeriod)
		there("[203.0.113.7/32]") // it was named in between
		time.Sleep(2 * routePeriod)
		there("[]")
		stop()
	})
}

// Each thing that can fail has a wait that says what it means, and the advice that fits it.
func TestWhatKeepsTheRoutesFromFittingIsTold(t *testing.T) {
	broken := errors.New("operation not permitted")
	route := replica.LocalRoute{Prefix: netip.MustParsePrefix("203.0.113.7/32"), Marked: true}
	for _, tc := range []struct {
		name      string
		fail      func(*routes, *metadata)
		forwarded []netip.Prefix
		want      string
		advice    string
	}{
		{"adding", func(r *routes, _ *metadata) { r.set(broken) }, prefixes("203.0.113.7/32"), endpointRouteMissing,
			"ip route add"},
		{"listing", func(r *routes, _ *metadata) { r.listErr = broken }, prefixes("203.0.113.7/32"),
			endpointRouteMissing, "may drop"},
		{"removing", func(r *routes, _ *metadata) { r.removeErr = broken }, nil, endpointRouteLeft, "ip route del"},
		{"reading the metadata", func(_ *routes, m *metadata) { m.refusals <- broken }, prefixes("203.0.113.7/32"),
			endpointRouteMissing, "stay as the metadata had them"},
	} {
		synctest.Test(t, func(t *testing.T) {
			kernel, m := &routes{}, &metadata{interfaces: make(chan []replica.Interface), refusals: make(chan error)}
			kernel.set(nil, route)
			tracker, stop := keptRoutes(t, slog.New(slog.DiscardHandler), kernel, m)
			m.interfaces <- []replica.Interface{{MAC: nic0, Forwarded: tc.forwarded}}
			synctest.Wait()
			if all := tracker.All(); len(all) > 0 {
				t.Errorf("%s: blocked before anything fails: %+v", tc.name, all)
			}
			tc.fail(kernel, m)
			time.Sleep(routeLinger + routePeriod)
			all := tracker.All()
			if len(all) != 1 || all[0].Name != tc.want || all[0].Reason != broken.Error() ||
				!strings.Contains(all[0].Next, tc.advice) ||
				strings.Contains(all[0].Next, "ip route add") != (tc.advice == "ip route add") {
				t.Errorf("%s: waits %+v, want %s with the advice %q", tc.name, all, tc.want, tc.advice)
			}
			kernel.set(nil, route)
			kernel.mu.Lock()
			kernel.listErr, kernel.removeErr = nil, nil
			kernel.mu.Unlock()
			m.interfaces <- []replica.Interface{{MAC: nic0, Forwarded: tc.forwarded}}
			time.Sleep(routePeriod)
			if all := tracker.All(); len(all) > 0 {
				t.Errorf("%s: still blocked: %+v", tc.name, all)
			}
			stop()
		})
	}
}
