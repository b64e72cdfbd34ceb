package gce

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

func TestStopInstance(t *testing.T) {
	t.Parallel()
	const (
		order    = "POST us-central1-a/instances/42/stop"
		question = "GET us-central1-a/operations/op-1"
		going    = `{"kind":"compute#operation","name":"op-1","status":"RUNNING"}`
		done     = `{"kind":"compute#operation","name":"op-1","status":"DONE"}`
	)
	type answer struct {
		to     string
		status int
		body   string
	}
	for _, tc := range []struct {
		name    string
		answers []answer
		want    string // of the error; empty: it is stopped
	}{
		{"at once", []answer{{order, 200, done}}, ""},
		{"after a while", []answer{{order, 200, going}, {question, 200, going}, {question, 200, done}}, ""},
		{"the answer was lost", []answer{{order, 503, "busy"}, {order, 200, going}, {question, 503, "busy"},
			{question, 200, done}}, ""},
		{"it is gone",
			[]answer{{order, 404, apiError(404, "notFound",
				"The resource 'projects/demo/zones/us-central1-a/instances/42' was not found")}}, ""},
		{"the zone is not there",
			[]answer{{order, 404, apiError(404, "notFound", "The resource 'projects/demo/zones/us-central1-a' was "+
				"not found")}}, "found status 404"},
		{"a refusal",
			[]answer{{order, 403, apiError(403, "forbidden", "Required 'compute.instances.stop' permission")}},
			`for the stop of instance 42 (m1 in us-central1-a): found status 403: ` +
				`"Required 'compute.instances.stop' permission"`},
		{"an operation that fails",
			[]answer{{order, 200, going},
				{question, 200,
					`{"kind":"compute#operation","name":"op-1","status":"DONE",` +
						`"error":{"errors":[{"code":"RESOURCE_NOT_READY","message":"try later"}]}}`}},
			`the stop of instance 42 (m1 in us-central1-a): found RESOURCE_NOT_READY: "try later"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			request := ""
			c := fakeAPI(t, 10*time.Second, func(w http.ResponseWriter, r *http.Request, n int) {
				got := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/demo/zones/")
				if n > len(tc.answers) || got != tc.answers[n-1].to {
					t.Errorf("question %d: %s, want %v", n, got, tc.answers)
					send(w, 400, "")
					return
				}
				if q := r.URL.Query(); r.Method == http.MethodPost && (q.Get("discardLocalSsd") != "true" ||
					q.Get("noGracefulShutdown") != "true") {
					t.Errorf("question %d: %s: a VM with Local SSD, or with a graceful shutdown, goes on", n, q.Encode())
				}
				if id := r.URL.Query().Get("requestId"); r.Method == http.MethodPost {
					if len(id) != 36 || request != "" && id != request {
						t.Errorf("request id %q, before %q: want one UUID", id, request)
					}
					request = id
				}
				send(w, tc.answers[n-1].status, tc.answers[n-1].body)
			})
			err := c.StopInstance(t.Context(), replica.Place{Zone: "us-central1-a", Name: "m1"}, "42")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
