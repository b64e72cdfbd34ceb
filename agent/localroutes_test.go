package agent

import (
	"bytes"
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
		{"nothing is forwarded and nothing is there", forwarded(), nil, "add [] remove []"},
		{"a VM becomes a backend", forwarded("203.0.113.7/32"), nil, "add [" + nic0 + " 203.0.113.7/32] remove []"},
		{"all is as it has to be", forwarded("203.0.113.7/32"), marked("203.0.113.7/32"), "add [] remove []"},
		{"one of two is gone", forwarded("203.0.113.7/32", "203.0.113.8/32"), marked("203.0.113.8/32"),
			"add [" + nic0 + " 203.0.113.7/32] remove []"},
		{"a VM is no backend any more", forwarded(), marked("203.0.113.7/32"), "add [] remove [203.0.113.7/32]"},
		{"the address changes", forwarded("203.0.113.8/32"), marked("203.0.113.7/32"),
			"add [" + nic0 + " 203.0.113.8/32] remove [203.0.113.7/32]"},
		{"an address is not its range", forwarded("203.0.113.0/24"), marked("203.0.113.0/32"),
			"add [" + nic0 + " 203.0.113.0/24] remove [203.0.113.0/32]"},
		{"each interface has its own", []replica.Interface{{MAC: nic0, Forwarded: prefixes("203.0.113.7/32")},
			{MAC: nic1, Forwarded: prefixes("10.1.0.9/32")}}, nil,
			"add [" + nic0 + " 203.0.113.7/32 " + nic1 + " 10.1.0.9/32] remove []"},
		{"an address that somebody has made local otherwise", forwarded("203.0.113.7/32"),
			[]replica.LocalRoute{foreign("203.0.113.7/32")}, "add [] remove []"},
		{"an alias range and a target instance, of Google's agent", []replica.Interface{{MAC: nic0,
			Others: prefixes("10.8.0.0/24", "203.0.113.9/32")}}, marked("10.8.0.0/24", "203.0.113.9/32"),
			"add [] remove []"},
		{"an alias range without a route is not ours to make", []replica.Interface{{MAC: nic0,
			Others: prefixes("10.8.0.0/24")}}, nil, "add [] remove []"},
		{"the VM's own addresses", forwarded(), []replica.LocalRoute{foreign("127.0.0.0/8"), foreign("10.240.0.2/32")},
			"add [] remove []"},
		{"no interface at all", nil, marked("203.0.113.7/32"), "add [] remove [203.0.113.7/32]"},
	} {
		c := decideRoutes(tc.interfaces, tc.there)
		var add []string
		for _, w := range c.add {
			add = append(add, w.mac+" "+w.prefix.String())
		}
		if got := fmt.Sprintf("add %v remove %v", add, c.remove); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// routes is a kernel's table that can refuse.
type routes struct {
	mu   sync.Mutex
	list []replica.LocalRoute
	err  error
}

func (r *routes) List() ([]replica.LocalRoute, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list), nil
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
	r.list = slices.DeleteFunc(r.list, func(l replica.LocalRoute) bool { return l.Prefix == p })
	return nil
}

func (r *routes) set(err error, list ...replica.LocalRoute) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list, r.err = list, err
}

// The route is made as soon as the metadata names it, put back when somebody takes it away, and waited for where it
// cannot be made.
func TestTheEndpointsRouteIsKept(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		kernel, log := &routes{}, &bytes.Buffer{}
		m := &metadata{interfaces: make(chan []replica.Interface)}
		a := newAgent(Config{Log: slog.New(slog.NewTextHandler(log, nil)), Metadata: m, LocalRoutes: kernel,
			RunDir: dir}, nil)
		kernel.set(nil, replica.LocalRoute{Prefix: netip.MustParsePrefix("203.0.113.9/32"), Marked: true})
		stop := a.keepRoutes(t.Context())
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
			all := a.tracker.All()
			if len(all) > 0 != want || want && (all[0].Name != endpointRouteMissing ||
				!strings.Contains(all[0].Reason, why)) {
				t.Errorf("waits: %+v, want one: %v", all, want)
			}
		}
		time.Sleep(3*routePeriod + time.Millisecond) // from here on the test acts between two looks
		there("[203.0.113.9/32]")                    // nothing is removed before the metadata has said what is forwarded
		m.interfaces <- []replica.Interface{{MAC: nic0, Forwarded: prefixes("203.0.113.7/32")}}
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
		there("[]")
		stop()
	})
}
