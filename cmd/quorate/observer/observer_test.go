package observer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/terminal/terminaltest"
	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func TestHealthText(t *testing.T) {
	terminaltest.CompareTexts(t, "testdata", func(w io.Writer, input []byte, now time.Time) error {
		var v health.Verdict
		err := json.Unmarshal(input, &v)
		Show(w, v, now)
		return err
	})
}

func TestTheEndpointIsAskedWithoutItsCA(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "" {
			t.Errorf("asked for %s with %v", r.URL, r.Header)
		}
		w.WriteHeader(code)
	}))
	defer server.Close()
	e := newEndpoint(&replica.Cluster{Endpoint: replica.Endpoint{ExternalIP: "198.51.100.1", InternalIP: "198.51.100.2",
		Port: 443}})
	if got := strings.Join(e.addresses, " "); got != "198.51.100.1:443 198.51.100.2:443" {
		t.Errorf("asks %q", got)
	}
	address := strings.TrimPrefix(server.URL, "https://")
	closed := httptest.NewServer(nil)
	closed.Close()
	e.addresses = []string{strings.TrimPrefix(closed.URL, "http://"), address} // the first cannot be reached from here
	if a := e.Ask(t.Context()); a.Address != address || !a.Serves() {
		t.Errorf("%+v", a)
	}
	code = http.StatusInternalServerError
	if a := e.Ask(t.Context()); a.Code != code || a.Serves() {
		t.Errorf("%+v", a)
	}
	server.Close()
	if a := e.Ask(t.Context()); a.Code != 0 || a.Address != e.addresses[0] ||
		!strings.Contains(a.Error, "connection refused") {
		t.Errorf("nobody answers: %+v", a)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if a := e.Ask(ended); a.Serves() || a.Error == "" {
		t.Errorf("without time: %+v", a)
	}
}

// On a master the endpoint's address leads to the master's own apiserver.
func TestAnAddressOfThisMachineIsNotAsked(t *testing.T) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var own string
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			own = n.IP.String()
		}
	}
	if own == "" {
		t.Skip("this machine has no address but loopback")
	}
	e := newEndpoint(&replica.Cluster{Endpoint: replica.Endpoint{ExternalIP: own, InternalIP: "127.0.0.1", Port: 443}})
	if got := strings.Join(e.addresses, " "); got != "127.0.0.1:443" {
		t.Errorf("asks %q", got)
	}
	e = newEndpoint(&replica.Cluster{Endpoint: replica.Endpoint{ExternalIP: own, Port: 443}})
	if a := e.Ask(t.Context()); a != nil {
		t.Errorf("asked itself: %+v", a)
	}
}

// The newest order for a number counts, and not the document; who was ordered out and has left is not looked for.
func TestOrdersSayWhoIsWanted(t *testing.T) {
	left, leaves := replica.Place{Zone: "us-central1-a", Name: "a"}, replica.Place{Zone: "us-central1-b", Name: "b"}
	v := record.View{Replicas: map[replica.Place][]record.Incarnation{left: nil, leaves: nil},
		Orders: []record.Order{{Number: 1, Kind: record.OrderReplicas, Replicas: 5},
			{Number: 2, Kind: record.OrderLeave, Place: &left, Done: &record.Done{}},
			{Number: 3, Kind: record.OrderLeave, Place: &leaves}}}
	f := health.Facts{Wanted: 3, Now: time.Now()}
	applyOrders(&f, v)
	if f.Wanted != 5 || !slices.Equal(f.Left, []replica.Place{left}) {
		t.Errorf("%d wanted, %v left", f.Wanted, f.Left)
	}
	f = health.Facts{Wanted: 3, Now: time.Now()}
	if applyOrders(&f, record.View{}); f.Wanted != 3 || f.Left != nil {
		t.Errorf("without orders: %d wanted, %v left", f.Wanted, f.Left)
	}
}

func TestCommandsNameTheProjectOfTheRecord(t *testing.T) {
	c := commandsFor(&replica.Cluster{}, &cluster.Flags{}, "12")
	p := replica.Place{Zone: "us-central1-a", Name: "master-a"}
	for want, got := range map[string]string{
		"gcloud compute instances start master-a --zone us-central1-a --project 12":            c.StartVM(p),
		"gcloud compute ssh master-a --zone us-central1-a --project 12 -- sudo quorate status": c.On(p, "quorate status"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTheEndpointIsWatchedWhileTheBucketHangs(t *testing.T) {
	var hangs atomic.Bool
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			<-r.Context().Done()
		}
		fmt.Fprint(w, "{}")
	}))
	defer bucket.Close()
	code := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		code = http.StatusInternalServerError
		hangs.Store(true)
	}))
	defer server.Close()
	o, err := New(&replica.Cluster{Name: "demo", Record: replica.Record{
		URL: "gs://b?endpoint=" + bucket.URL}}, &cluster.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	o.Endpoint.addresses = []string{strings.TrimPrefix(server.URL, "https://")}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	var out strings.Builder
	if state := o.Follow(ctx, &out); state != health.NotServing || !strings.Contains(out.String(), "the endpoint does not serve") {
		t.Errorf("%s\n%s", state, &out)
	}
}

func TestAStallIsCounted(t *testing.T) {
	at := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	s := stall{served: true, since: at}
	up, down := &health.Endpoint{Code: 200}, &health.Endpoint{Code: 500}
	for n, want := range []struct {
		answer *health.Endpoint
		said   string
	}{{up, ""}, {down, "the endpoint does not serve"}, {down, ""}, {&health.Endpoint{Error: "x"}, ""},
		{up, "the endpoint serves again, after 3s"}, {up, ""}} {
		if got := s.note(want.answer, at.Add(time.Duration(n)*time.Second)); got != want.said {
			t.Errorf("second %d: %q, want %q", n, got, want.said)
		}
	}
}
