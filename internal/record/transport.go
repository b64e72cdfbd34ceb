package record

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gocloud.dev/gcp"
)

// transport sits between Google's storage client and the network. It ends the current try (see attempt) on each transient
// failure, remembers the answer's status, and sends the requests to another server where an endpoint is set.
type transport struct {
	base     http.RoundTripper
	endpoint *url.URL // nil: Google's own
}

// newClient makes the HTTP client: with the machine's default credentials for Google, with none for another endpoint.
func newClient(ctx context.Context, endpoint *url.URL) (*gcp.HTTPClient, error) {
	network := http.DefaultTransport.(*http.Transport).Clone()
	// Without pings a connection that a partition has killed would be used, and time out, until TCP gives up after minutes.
	network.HTTP2 = &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 3 * time.Second}
	if endpoint != nil {
		return gcp.NewAnonymousHTTPClient(&transport{network, endpoint}), nil
	}
	// The credentials keep this context for all later token requests: it must not end with the caller's.
	credentials, err := gcp.DefaultCredentials(context.WithoutCancel(ctx))
	if err != nil {
		return nil, fmt.Errorf("find credentials for Google: %w", err)
	}
	client, err := gcp.NewHTTPClient(network, gcp.CredentialsTokenSource(credentials))
	if err != nil {
		return nil, err
	}
	client.Transport = &transport{client.Transport, nil} // outermost: a token that cannot be fetched is transient, too
	return client, nil
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	a, ok := req.Context().Value(attemptKey{}).(*attempt)
	if !ok {
		return nil, fmt.Errorf("request to %s outside a try: a bug in package record", req.URL.Host)
	}
	resp, err := t.base.RoundTrip(t.redirect(req))
	if a.retriesItself {
		if err != nil {
			return nil, brokenOff{err}
		}
		a.status.Store(int32(resp.StatusCode))
		return resp, nil
	}
	if err != nil {
		if req.Context().Err() == nil {
			a.fail(err)
		}
		return nil, err
	}
	a.status.Store(int32(resp.StatusCode))
	if !transientStatus(resp.StatusCode) {
		resp.Body = &body{resp.Body, a}
		return resp, nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // only makes the message better
	resp.Body.Close()
	err = fmt.Errorf("%s answered %s: %s", req.URL.Host, resp.Status, strings.Join(strings.Fields(string(text)), " "))
	a.fail(err)
	return nil, err
}

// redirect points a request at the endpoint. The Host header keeps Google's name, by which such servers tell the APIs apart.
func (t *transport) redirect(req *http.Request) *http.Request {
	if t.endpoint == nil {
		return req
	}
	out := req.Clone(req.Context())
	if out.Host == "" {
		out.Host = req.URL.Host
	}
	out.URL.Scheme, out.URL.Host = t.endpoint.Scheme, t.endpoint.Host
	return out
}

// transientStatus are the answers that Google says to try again after.
func transientStatus(code int) bool {
	return code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500
}

// brokenOff tells Google's client, which does not try a part again after every way in which a connection ends, that it may.
type brokenOff struct{ error }

// Temporary is what the client asks.
func (b brokenOff) Temporary() bool { return true }

// Unwrap returns the cause.
func (b brokenOff) Unwrap() error { return b.error }

// body ends the try when an answer breaks off in the middle.
type body struct {
	io.ReadCloser
	attempt *attempt
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.attempt.fail(fmt.Errorf("the answer broke off: %w", err))
	}
	return n, err
}
