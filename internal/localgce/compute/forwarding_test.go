package compute_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// What a forwarding rule leads to is what quorate's client has asked for; nothing is forwarded before it is there, or
// after it was deleted.
func TestAForwardingRuleLeadsToWhatIsAttached(t *testing.T) {
	in(t, func(w *world) {
		s := surroundings()
		s.Name, s.Zones = groupName, []string{zoneA}
		a := w.addVM("master-a", 7, 20)
		w.addVM("master-b", 8, 21)
		for _, r := range s.Resources() {
			if got := w.server.Forwardings(); len(got) > 0 {
				w.t.Errorf("before the %s: %+v", r.Kind, got)
			}
			w.do(w.InsertResource(w.t.Context(), r))
		}
		_, err := w.attach(a)
		w.do(err)
		got := w.server.Forwardings()
		want := []instance.Forwarding{{Address: got[0].Address, Port: 443, Internal: true, Drain: time.Minute,
			Endpoints: []uint64{7},
			Check: instance.HealthCheck{Port: 443, Path: "/readyz", Interval: time.Second, Timeout: time.Second,
				Healthy: 1, Unhealthy: 2}}}
		if !reflect.DeepEqual(got, want) || got[0].Address.String() != s.Address {
			w.t.Errorf("%+v\nwant %+v", got, want)
		}
		before := w.changed
		_, there, err := w.Surroundings(w.t.Context(), s)
		w.do(err)
		group := slices.IndexFunc(there, func(r gce.Resource) bool { return r.Kind == gce.EndpointGroup })
		err = w.DeleteResource(w.t.Context(), there[group])
		if !strings.Contains(fmt.Sprint(err), "is already being used by") {
			w.t.Errorf("a group is deleted that a backend service has: %v", err)
		}
		rule := slices.IndexFunc(there, func(r gce.Resource) bool { return r.Kind == gce.ForwardingRule })
		w.do(w.DeleteResource(w.t.Context(), there[rule]))
		if got := w.server.Forwardings(); len(got) > 0 || w.changed == before {
			w.t.Errorf("after its deletion: %+v, of which the project heard: %t", got, w.changed > before)
		}
	})
}
