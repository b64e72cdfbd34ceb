package gce

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"

	"github.com/quorate/quorate/internal/setup"
)

// UserClient sends requests to Google's services as whoever Google's application default credentials stand for. It is
// for operators' commands; an agent uses Metadata.Client. The credentials are looked for at the first request that
// needs them, so that a command whose record is no bucket needs none.
func UserClient() *http.Client { return direct(&userCredentials{next: newCloudTransport()}) }

// userCredentials adds a person's token to each request to a server of Google's, and to no other: such a token opens
// more than one cluster, and a document that names a stand-in may be another person's.
type userCredentials struct {
	next http.RoundTripper
	// detect finds the credentials; nil: the default ones.
	detect func() (*auth.Credentials, error)

	mu    sync.Mutex
	found *auth.Credentials
}

// RoundTrip implements http.RoundTripper.
func (u *userCredentials) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isGoogles(req.URL) {
		return u.next.RoundTrip(req)
	}
	signed, err := u.authorize(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	return u.next.RoundTrip(signed)
}

func isGoogles(u *url.URL) bool {
	return u.Scheme == "https" && strings.HasSuffix(u.Hostname(), ".googleapis.com")
}

func (u *userCredentials) authorize(req *http.Request) (*http.Request, error) {
	c, err := u.find()
	if err != nil {
		return nil, err
	}
	token, err := c.Token(req.Context())
	if err != nil {
		return nil, fmt.Errorf("get a token by the default credentials: %w", err)
	}
	req = authorized(req, token.Value)
	// Some APIs serve a person only where it is said which project is charged.
	if project, err := c.QuotaProjectID(req.Context()); err == nil && project != "" {
		req.Header.Set("X-Goog-User-Project", project)
	}
	return req, nil
}

// find tries until it has the credentials.
func (u *userCredentials) find() (*auth.Credentials, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.found != nil {
		return u.found, nil
	}
	detect := u.detect
	if detect == nil {
		detect = func() (*auth.Credentials, error) {
			return credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{setup.CloudScope}})
		}
	}
	found, err := detect()
	if err != nil {
		return nil, finalError{fmt.Errorf("find the default credentials for Google: %w", err)}
	}
	u.found = found
	return found, nil
}
