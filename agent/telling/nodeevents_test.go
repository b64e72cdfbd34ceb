package telling

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/internal/report"
)

// An event is posted again until the apiserver has taken it, once and in order.
func TestNodeEventsArePostedUntilTheyAreTaken(t *testing.T) {
	var mu sync.Mutex
	var got []corev1.Event
	refuse := true
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var e corev1.Event
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/api/v1/namespaces/default/events" || json.Unmarshal(b, &e) != nil {
			t.Errorf("%s: %s", r.URL, b)
		}
		if refuse {
			refuse = false
			http.Error(rw, "not now", http.StatusServiceUnavailable)
			return
		}
		got = append(got, e)
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusCreated)
		rw.Write(b)
	}))
	defer server.Close()
	e := NewNodeEvents()
	e.Open("master-a", func() (core.EventsGetter, error) {
		return core.NewForConfig(&rest.Config{Host: server.URL,
			ContentConfig:   rest.ContentConfig{ContentType: "application/json"},
			TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	})
	now := time.Now()
	e.TellUnit(kubelet.Record{At: now.Add(-2 * time.Hour), Unit: "a.service", What: "ended"})
	e.TellUnit(kubelet.Record{At: now, Unit: "containerd.service", What: "restart", Cause: "hung", Reason: "it is silent",
		Outcome: "well again after 1s"})
	e.TellUnit(kubelet.Record{At: now.Add(1), Unit: "kubelet.service", What: "ended", Reason: "SIGKILL"})
	go e.Run(t.Context())
	deadline := time.Now().Add(20 * time.Second)
	for done := false; !done && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		done = len(got) == 2
		mu.Unlock()
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 {
		t.Fatalf("%d events were posted: %+v", len(got), got)
	}
	first := got[0]
	if first.Reason != "UnitRestarted" || first.InvolvedObject.Kind != "Node" ||
		first.InvolvedObject.Name != "master-a" ||
		first.Message != "restart of containerd.service (hung): it is silent; well again after 1s" ||
		first.Type != "Warning" || got[1].Reason != "UnitEnded" || first.Name == got[1].Name {
		t.Errorf("the events are %+v", got)
	}
}

// What is important of the reports is told at the Node, too, within bounds, and without an apiserver nobody waits.
func TestReportedEventsAreToldAtTheNodeWithinBounds(t *testing.T) {
	e := NewNodeEvents()
	e.TellReported([]report.Event{{Kind: report.Ready}}) // before the document is known
	e.Open("m", nil)
	now := time.Now()
	e.TellReported([]report.Event{{At: now, Kind: report.Row, Text: "row x holds"},
		{At: now, Kind: report.ComponentState, Text: "etcd is ready"},
		{At: now, Kind: report.StartedAgain, Text: "etcd is ready, started again: exit code 1"},
		{At: now, Kind: report.Silent, Text: "hears nothing of master-b any more"}, {At: now, Kind: report.Ready}})
	var got []string
	for _, n := range e.queue {
		got = append(got, fmt.Sprintf("%s %t", n.reason, n.warning))
	}
	if want := []string{"MasterStartedAgain true", "MasterSilent true", "MasterReady false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if first, second := eventOf(e.queue[0], "m"), eventOf(e.queue[1], "m"); first.Name == second.Name {
		t.Errorf("two events of one moment are called %s", first.Name)
	}
	for n := range 1000 {
		e.add(nodeEvent{at: now.Add(time.Duration(n) * time.Second)})
	}
	if len(e.queue) != eventsHeld || len(e.told) != eventsAnHour {
		t.Errorf("%d are held, %d were told within an hour", len(e.queue), len(e.told))
	}
	e.add(nodeEvent{at: now.Add(2 * time.Hour), reason: "later"})
	if last := e.queue[len(e.queue)-1]; last.reason != "later" || len(e.told) != 1 {
		t.Errorf("%+v, %d", last, len(e.told))
	}
}
