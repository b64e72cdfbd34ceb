package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

func TestAWatchBreaksIfItEndsBeforeItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		until  time.Duration
		ended  bool // whoever watched has ended
		breaks int
	}{
		"before its time":         {time.Hour, false, 1},
		"at its time":             {0, false, 0},
		"with whoever watched it": {time.Hour, true, 0},
	} {
		var w Watches
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		inner := watch.NewFake()
		followed := w.follow(ctx, inner, Break{Who: "a", Master: "10.0.0.1"}, begin.Add(c.until))
		if w.Open() != 1 {
			t.Errorf("%s: %d are open", name, w.Open())
		}
		go inner.Add(nil)
		if e := <-followed.ResultChan(); e.Type != watch.Added {
			t.Errorf("%s: the event is %v", name, e)
		}
		if c.ended {
			cancel()
		}
		inner.Stop()
		for range followed.ResultChan() {
			t.Errorf("%s: an event after the end", name)
		}
		got := w.Breaks(begin, time.Now())
		if len(got) != c.breaks || w.Open() != 0 || c.breaks == 1 && got[0].Master != "10.0.0.1" {
			t.Errorf("%s: breaks %+v, %d open", name, got, w.Open())
		}
		cancel()
	}
}

func TestCausesAreWordsThatManyHaveInCommon(t *testing.T) {
	for _, c := range []struct {
		status int
		err    error
		want   string
	}{
		{status: 200},
		{status: 404},
		{status: 409},
		{status: 429, want: "429 Too Many Requests"},
		{status: 503, want: "503 Service Unavailable"},
		{err: fmt.Errorf("dial tcp 10.0.0.1:443: %w", syscall.ECONNREFUSED), want: "connection refused"},
		{err: fmt.Errorf("read tcp 10.0.0.1:443: %w", syscall.ECONNRESET), want: "connection reset"},
		{err: errors.New("net/http: request canceled"), want: "no answer in time"},
		{err: errors.New("http2: client connection lost"), want: "no answer to a ping"},
		{err: context.DeadlineExceeded, want: "no answer in time"},
		{err: errors.New("another"), want: "another"},
	} {
		var resp *http.Response
		if c.err == nil {
			resp = &http.Response{StatusCode: c.status}
		}
		if got := cause(resp, c.err); got != c.want {
			t.Errorf("%d, %v: %q, want %q", c.status, c.err, got, c.want)
		}
	}
	later := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"1"}}}
	if got := cause(later, nil); got != "" || !deferred(later, nil) {
		t.Errorf("one that is to be asked again: %q, deferred %t", got, deferred(later, nil))
	}
}
