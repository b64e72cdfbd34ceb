package gce

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// follow runs a watch of an attribute and hands out what it reports.
func follow(t *testing.T, m *Metadata, key string) (next func() string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	said, ended := make(chan string, 10), make(chan error, 1)
	go func() {
		ended <- m.Watch(ctx, key, func(value string, present bool) { said <- fmt.Sprintf("%q %v", value, present) })
	}()
	next = func() string {
		select {
		case s := <-said:
			return s
		case <-time.After(10 * time.Second):
			t.Fatal("the watch says nothing")
			return ""
		}
	}
	stop = func() error { cancel(); return <-ended }
	t.Cleanup(func() { cancel() })
	return next, stop
}

func TestWatchSeesEachChange(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	next, stop := follow(t, f.dial(time.Second), "quorate-cluster")
	expect := func(want string) {
		t.Helper()
		if got := next(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	expect(`"" false`)
	f.set(watchedAttributes, `{"quorate-cluster":"a"}`)
	expect(`"a" true`)
	f.set(watchedAttributes, `{"quorate-cluster":"a","ssh-keys":"another attribute"}`)
	f.set(watchedAttributes, `{"quorate-cluster":""}`)
	expect(`"" true`)
	f.set(watchedAttributes, `{}`)
	expect(`"" false`)
	if err := stop(); err != context.Canceled {
		t.Errorf("the watch ended with %v", err)
	}
}

func TestWatchOutlivesTheServer(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	next, _ := follow(t, f.dial(time.Second), "quorate-cluster")
	next()
	faults := []func(w http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") },
		func(w http.ResponseWriter) {
			w.Header().Set("Metadata-Flavor", "Google")
			w.Header().Set("ETag", "x")
			fmt.Fprint(w, "[]")
		},
		func(w http.ResponseWriter) {
			w.Header().Set("Metadata-Flavor", "Google")
			fmt.Fprint(w, "{}")
		},
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	}
	tried := make(chan struct{})
	var n atomic.Int64
	f.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
		i := int(n.Add(1)) - 1
		if i == len(faults) {
			close(tried)
		}
		if i >= len(faults) {
			return false
		}
		faults[i](w)
		return true
	})
	f.set(watchedAttributes, `{"quorate-cluster":"new"}`)
	if got := next(); got != `"new" true` && got != `"" false` {
		t.Errorf("got %s", got)
	}
	f.set(watchedAttributes, `{"quorate-cluster":"newer"}`)
	for got := ""; got != `"newer" true`; {
		got = next()
	}
	<-tried
}

// A server that ignores wait_for_change must not be asked without pause.
func TestWatchRestsWhenTheServerDoesNotHold(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	asked := make(chan struct{}, 1000)
	f.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		asked <- struct{}{}
		w.Header().Set("Metadata-Flavor", "Google")
		w.Header().Set("ETag", "same")
		fmt.Fprint(w, "{}")
		return true
	}
	next, stop := follow(t, f.dial(time.Second), "quorate-cluster")
	next()
	time.Sleep(500 * time.Millisecond)
	if err := stop(); err != context.Canceled {
		t.Error(err)
	}
	if n := len(asked); n > 10 {
		t.Errorf("the server was asked %d times in half a second", n)
	}
}

func TestSpot(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	m := f.dial(time.Second)
	for said, want := range map[string]string{"TRUE": "true, <nil>", "FALSE\n": "false, <nil>",
		"maybe": `false, the metadata server at ` + m.host + ` says that instance/scheduling/preemptible is "maybe": ` +
			`TRUE and FALSE are known`} {
		f.set("instance/scheduling/preemptible", said)
		spot, err := m.Spot(t.Context())
		if got := fmt.Sprintf("%t, %v", spot, err); got != want {
			t.Errorf("%q: got %s, want %s", said, got, want)
		}
	}
}

func TestAccount(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	m := f.dial(3 * time.Second)
	if account, err := m.Account(t.Context()); err == nil {
		t.Errorf("a VM without a service account acts as %q", account)
	}
	f.set("instance/service-accounts/default/email", "m@example.iam.gserviceaccount.com\n")
	if account, err := m.Account(t.Context()); account != "m@example.iam.gserviceaccount.com" || err != nil {
		t.Errorf("got %q, %v", account, err)
	}
}

func TestMaintenanceEvent(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	m := f.dial(time.Second)
	if event, err := m.MaintenanceEvent(t.Context()); event != NoMaintenance || err != nil {
		t.Errorf("got %q, %v", event, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var events []string
	err := m.WatchMaintenanceEvent(ctx, func(event string) {
		if events = append(events, event); len(events) == 1 {
			go f.set(maintenancePath, "TERMINATE_ON_HOST_MAINTENANCE")
			return
		}
		cancel()
	})
	if got := fmt.Sprint(events); got != "[NONE TERMINATE_ON_HOST_MAINTENANCE]" || err != context.Canceled {
		t.Errorf("got %s, %v", got, err)
	}
}
