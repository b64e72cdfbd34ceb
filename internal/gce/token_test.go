package gce

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// authOf is what a request carries once the credentials have been added.
func authOf(t *testing.T, v *vmCredentials) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://compute.googleapis.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := v.RoundTrip(req)
	if err != nil {
		return "", err
	}
	if req.Header.Get("Authorization") != "" {
		t.Error("the caller's own request was changed")
	}
	return res.Request.Header.Get("Authorization"), nil
}

// echo answers with the request that it got.
type echo struct{}

func (echo) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: req, Body: http.NoBody}, nil
}

func TestTokenIsKeptUntilItEnds(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	v := &vmCredentials{metadata: f.dial(time.Second), next: echo{}}
	expect := func(want string) {
		t.Helper()
		if got, err := authOf(t, v); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	f.set(tokenPath, `{"access_token":"one","expires_in":3599,"token_type":"Bearer"}`)
	expect("Bearer one")
	f.set(tokenPath, `{"access_token":"two","expires_in":3599,"token_type":"Bearer"}`)
	expect("Bearer one")
	v.until = time.Now()
	expect("Bearer two")
	if left := time.Until(v.until); left < 54*time.Minute || left > 56*time.Minute {
		t.Errorf("it is kept for %s", left)
	}
}

func TestTokenThatIsNone(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	m := f.dial(time.Second)
	for _, answer := range []string{"", "secret", `{"access_token":"secret"}`, `{"expires_in":5}`, `{"access_token":"secret","expires_in":-1}`} {
		f.set(tokenPath, answer)
		got, err := authOf(t, &vmCredentials{metadata: m, next: echo{}})
		if err == nil || got != "" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %q, %v", answer, got, err)
		}
	}
}

// A VM without a service account is told so at once, in one line.
func TestComputeWithoutServiceAccount(t *testing.T) {
	t.Parallel()
	c, err := NewCompute(ComputeConfig{Project: "demo", Metadata: newFakeMetadata(t).dial(time.Second), Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := c.Instances(t.Context(), "prod")
	if got != nil || err == nil || !strings.Contains(fmt.Sprint(err), `"instance/service-accounts/default/token" not defined`) {
		t.Errorf("got %v, %v", got, err)
	}
}
