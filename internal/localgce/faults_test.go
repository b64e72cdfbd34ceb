package localgce_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// Every service fails in these ways, whatever it would have answered.
func TestServicesFail(t *testing.T) {
	server, setFault := localgce.BehindFaults(localgce.Metadata,
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
		fault  localgce.Fault
		method string
		code   int    // 0: an error, within the time or at its end
		body   string // contained in the answer
		late   bool
	}{
		{localgce.Fault{}, "POST", 200, "well: sent", false},
		{localgce.Fault{Kind: "slow", Delay: 10 * time.Millisecond}, "POST", 200, "well: sent", false},
		{localgce.Fault{Kind: "slow", Delay: time.Hour}, "POST", 0, "", true},
		{localgce.Fault{Kind: "silent"}, "POST", 0, "", true},
		{localgce.Fault{Kind: "away"}, "GET", 0, "", false},
		{localgce.Fault{Kind: "html"}, "GET", 200, "<!DOCTYPE html>", false},
		{localgce.Fault{Kind: "forbidden"}, "GET", 403, `"code":403`, false},
		{localgce.Fault{Kind: "notfound"}, "GET", 404, `"code":404`, false},
		{localgce.Fault{Kind: "unavailable", Delay: 10 * time.Millisecond}, "GET", 503, `"code":503`, false},
		{localgce.Fault{Kind: "readonly"}, "GET", 200, "well: sent", false},
		{localgce.Fault{Kind: "readonly"}, "POST", 403, `"code":403`, false},
		{localgce.Fault{}, "POST", 200, "well: sent", false},
	} {
		if err := setFault(c.fault); err != nil {
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

func TestFaultsThatMakeNoSenseAreRefused(t *testing.T) {
	_, metadata := localgce.BehindFaults(localgce.Metadata, nil)
	_, compute := localgce.BehindFaults(localgce.Compute,
		localgce.NewComputeServer(func() []localgce.Instance { return nil }))
	_, other := localgce.BehindFaults("sql", nil)
	for want, err := range map[string]error{
		`metadata fault "tired": slow,`:     metadata(localgce.Fault{Kind: "tired"}),
		`metadata fault "stale": slow,`:     metadata(localgce.Fault{Kind: "stale"}),
		`makes nothing slow`:                metadata(localgce.Fault{Kind: "slow"}),
		`compute fault "absent" with 0 vms`: compute(localgce.Fault{Kind: "absent"}),
		`compute fault "forbidden" with 1 vms`: compute(localgce.Fault{Kind: "forbidden",
			VMs: []string{"x"}}),
		`compute fault "terminated": detached is for absent`: compute(localgce.Fault{Kind: "terminated",
			VMs: []string{"x"}, Detached: true}),
		`compute fault "absent": detached is for`: compute(localgce.Fault{Kind: "absent",
			VMs: []string{"x"}, LastStop: time.Now()}),
		`service "sql": metadata, compute and storage are known`: other(localgce.Fault{Kind: "away"}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
