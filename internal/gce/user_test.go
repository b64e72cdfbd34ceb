package gce

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// keyFile is a service account's key whose tokens come from a server of the test.
func keyFile(t *testing.T, server string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "x@demo.iam.gserviceaccount.com", "private_key_id": "1",
		"token_uri":        server,
		"private_key":      string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"quota_project_id": "payer",
	})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAnOperatorIsKnownByTheDefaultCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusOK, tokenAnswer("mine"))
	}))
	defer server.Close()
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "absent.json"))
	u := &userCredentials{next: echo{}}
	get := func() (http.Header, error) {
		res, err := u.RoundTrip(httptest.NewRequest(http.MethodGet, "https://storage.googleapis.com/", nil))
		if err != nil {
			return nil, err
		}
		return res.Request.Header, nil
	}
	if sent, err := get(); err == nil {
		t.Fatalf("without credentials: sent %v", sent)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", keyFile(t, server.URL)) // that there were none is not remembered
	sent, err := get()
	if err != nil || sent.Get("Authorization") != "Bearer mine" || sent.Get("X-Goog-User-Project") != "payer" {
		t.Errorf("sent %v, %v", sent, err)
	}
}

// echo answers with the request that it got.
type echo struct{}

func (echo) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: req, Body: http.NoBody}, nil
}
