package fault_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/localgce/fault"
)

// Every service fails in these ways, whatever it would have answered.
func TestServicesFail(t *testing.T) {
	faults, nobody := &fault.Set{}, func(*http.Request) string { return "" }
	server := faults.Before(fault.Metadata, nobody,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			io.WriteString(w, "well: "+string(body))
		}))
	front := httptest.NewServer(server)
	t.Cleanup(front.Close)
	call := func(method string) (int, string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, method, front.URL, strings.NewReader("sent"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
	for _, c := range []struct {
		fault  fault.Fault
		method string
		code   int    // 0: an error, within the time or at its end
		body   string // contained in the answer
		late   bool
	}{
		{fault.Fault{}, "POST", 200, "well: sent", false},
		{fault.Fault{Kind: "slow", Delay: 10 * time.Millisecond}, "POST", 200, "well: sent", false},
		{fault.Fault{Kind: "slow", Delay: time.Hour}, "POST", 0, "", true},
		{fault.Fault{Kind: "silent"}, "POST", 0, "", true},
		{fault.Fault{Kind: "away"}, "GET", 0, "", false},
		{fault.Fault{Kind: "html"}, "GET", 200, "<!DOCTYPE html>", false},
		{fault.Fault{Kind: "forbidden"}, "GET", 403, `"code":403`, false},
		{fault.Fault{Kind: "notfound"}, "GET", 404, `"code":404`, false},
		{fault.Fault{Kind: "unavailable", Delay: 10 * time.Millisecond}, "GET", 503, `"code":503`, false},
		{fault.Fault{Kind: "readonly"}, "GET", 200, "well: sent", false},
		{fault.Fault{Kind: "readonly"}, "POST", 403, `"code":403`, false},
		{fault.Fault{}, "POST", 200, "well: sent", false},
	} {
		if err := faults.Put(fault.Metadata, c.fault); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		code, body, err := call(c.method)
		if code != c.code || (err == nil) != (c.code != 0) || !strings.Contains(body, c.body) ||
			errors.Is(err, context.DeadlineExceeded) != c.late {
			t.Errorf("%+v, %s: %d %q, %v", c.fault, c.method, code, body, err)
		}
		if took := time.Since(began); c.code != 0 && took < c.fault.Delay {
			t.Errorf("%+v: answered after %s", c.fault, took)
		}
	}
}

// Until a minute's quota is used up, requests pass; then none does until the clock's next minute. A fault for a time
// ends by itself, and leaves the one that everybody has.
func TestQuotasAreCountedByTheMinuteAndFaultsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := &fault.Set{}
		server := faults.Before(fault.Compute, func(r *http.Request) string { return r.Host },
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		ask := func(who string) int {
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+who+"/", nil))
			return w.Code
		}
		put := func(f fault.Fault) {
			if err := faults.Put(fault.Compute, f); err != nil {
				t.Fatal(err)
			}
		}
		want := func(when string, who string, codes ...int) {
			for n, code := range codes {
				if got := ask(who); got != code {
					t.Errorf("%s: %s's request %d: %d, want %d", when, who, n+1, got, code)
				}
			}
		}
		put(fault.Fault{Kind: "ratelimited", Quota: 2})
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		want("at first", "a", 200, 200, 403)
		time.Sleep(59 * time.Second)
		want("in the same minute", "b", 403)
		time.Sleep(time.Second)
		want("in the next", "b", 200, 200, 403)
		put(fault.Fault{Who: "a", Kind: "unavailable", For: 10 * time.Minute})
		time.Sleep(10*time.Minute - 1)
		want("until its end", "a", 503, 503)
		want("until its end", "b", 200)
		time.Sleep(time.Minute)
		want("after its end", "a", 200, 200, 403)
	})
}

func TestFaultsThatMakeNoSenseAreRefused(t *testing.T) {
	to := func(s fault.Service) func(fault.Fault) error {
		return func(f fault.Fault) error { return (&fault.Set{}).Put(s, f) }
	}
	metadata, compute, other := to(fault.Metadata), to(fault.Compute), to("sql")
	for want, err := range map[string]error{
		`metadata fault "tired": slow,`:     metadata(fault.Fault{Kind: "tired"}),
		`metadata fault "stale": slow,`:     metadata(fault.Fault{Kind: "stale"}),
		`makes nothing slow`:                metadata(fault.Fault{Kind: "slow"}),
		`compute fault "absent" with 0 vms`: compute(fault.Fault{Kind: "absent"}),
		`compute fault "forbidden" with 1 vms`: compute(fault.Fault{Kind: "forbidden",
			VMs: []string{"x"}}),
		`compute fault "terminated": detached is for absent`: compute(fault.Fault{Kind: "terminated",
			VMs: []string{"x"}, Detached: true}),
		`compute fault "absent": detached is for`: compute(fault.Fault{Kind: "absent",
			VMs: []string{"x"}, LastStop: time.Now()}),
		`compute fault "forbidden": a quota is for ratelimited`:  compute(fault.Fault{Kind: "forbidden", Quota: 1}),
		`quota 0 and for -1s must not be negative`:               compute(fault.Fault{Kind: "away", For: -time.Second}),
		`compute: a service that is well is so for longer`:       compute(fault.Fault{For: time.Second}),
		`service "sql": metadata, compute and storage are known`: other(fault.Fault{Kind: "away"}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
