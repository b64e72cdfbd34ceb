package gce

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// tokens is Google: it gives a token of the account for one of the person's, and echoes what comes with that.
type tokens struct{ status int }

func (s tokens) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != "iamcredentials.googleapis.com" {
		return echo{}.RoundTrip(req)
	}
	w := httptest.NewRecorder()
	switch {
	case req.Header.Get("Authorization") != "Bearer mine",
		req.URL.Path != "/v1/projects/-/serviceAccounts/master@demo.iam.gserviceaccount.com:generateAccessToken":
		w.WriteHeader(http.StatusTeapot)
	case s.status != http.StatusOK:
		w.WriteHeader(s.status)
	default:
		_, _ = w.WriteString(`{"accessToken":"the master's","expireTime":"2100-01-01T00:00:00Z"}`)
	}
	return w.Result(), nil
}

func TestAPersonActsAsTheMasters(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusOK, tokenAnswer("mine"))
	}))
	defer server.Close()
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", keyFile(t, server.URL))
	const account = "master@demo.iam.gserviceaccount.com"
	ask := func(status int, url string) (string, error) {
		c := direct(impersonating(account, tokens{status}))
		res, err := c.Get(url)
		if err != nil {
			return "", err
		}
		return res.Request.Header.Get("Authorization"), nil
	}
	if sent, err := ask(http.StatusOK, "https://storage.googleapis.com/"); sent != "Bearer the master's" || err != nil {
		t.Errorf("sent %q, %v", sent, err)
	}
	if sent, err := ask(http.StatusOK, "http://127.0.0.1/"); sent != "" || err != nil {
		t.Errorf("sent %q to a stand-in, %v", sent, err)
	}
	_, err := ask(http.StatusForbidden, "https://storage.googleapis.com/")
	var final interface{ Final() }
	if !errors.As(err, &final) || !strings.Contains(err.Error(), account) ||
		!strings.Contains(err.Error(), "serviceAccountTokenCreator") {
		t.Errorf("refused: %v", err)
	}
}
