package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Kind is what a request is for.
type Kind string

// The kinds of requests. Watches are also the lists that come before them.
const (
	Lease Kind = "lease"
	Nodes Kind = "node"
	Pods  Kind = "pod"
	Watch Kind = "watch"
	Other Kind = "other"
)

// Request is one request as it went out: what client-go tries again is another.
type Request struct {
	Who   string // whose connection it went over
	Kind  Kind
	Write bool
	Began time.Time
	Took  time.Duration // until the answer's header
	// Master is the address of the one that answered; empty: none did.
	Master string
	// Deferred: it was answered that the client is to ask again soon, which client-go does by itself, up to ten times.
	Deferred bool
	// Cause is why it failed, in words that many have in common; empty: it did not.
	Cause string
}

// Meter notes the requests of many connections, and which master each of them leads to.
type Meter struct {
	of []string // the masters' addresses

	mu       sync.Mutex
	requests []Request
	masters  map[string]string // by connection
}

// NewMeter is a meter for a cluster whose masters have these addresses, each of which stands in its master's serving
// certificate alone.
func NewMeter(masters []string) *Meter { return &Meter{of: masters, masters: map[string]string{}} }

// Requests are those that began in a span of time and have ended.
func (m *Meter) Requests(from, to time.Time) (out []Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		if !r.Began.Before(from) && r.Began.Before(to) {
			out = append(out, r)
		}
	}
	return out
}

// Master is the address of the master that a connection led to last.
func (m *Meter) Master(who string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.masters[who]
}

// wrap has a meter note what goes over a connection.
func (m *Meter) wrap(who string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &metered{m, who, next} }
}

type metered struct {
	*Meter
	who  string
	next http.RoundTripper
}

func (m *metered) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := m.next.RoundTrip(r)
	if errors.Is(r.Context().Err(), context.Canceled) {
		return resp, err // whoever asked has ended
	}
	done := Request{Who: m.who, Kind: kindOf(r), Write: r.Method != http.MethodGet, Began: began,
		Took: time.Since(began), Deferred: deferred(resp, err), Cause: cause(resp, err)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if resp != nil && resp.TLS != nil && len(resp.TLS.PeerCertificates) > 0 {
		done.Master = m.masterOf(resp.TLS.PeerCertificates[0].IPAddresses)
		m.masters[m.who] = done.Master
	}
	m.requests = append(m.requests, done)
	return resp, err
}

// masterOf is the master that has one of a certificate's addresses.
func (m *Meter) masterOf(addresses []net.IP) string {
	for _, ip := range addresses {
		if slices.Contains(m.of, ip.String()) {
			return ip.String()
		}
	}
	return ""
}

func kindOf(r *http.Request) Kind {
	path := r.URL.Path
	switch {
	case strings.Contains(path, "/leases"):
		return Lease
	case r.URL.Query().Has("watch"), r.URL.Query().Has("resourceVersion"):
		return Watch
	case strings.HasPrefix(path, "/api/v1/nodes"):
		return Nodes
	case strings.Contains(path, "/pods"):
		return Pods
	}
	return Other
}

// deferred is what an apiserver answers that shuts down, or has too much to do.
func deferred(resp *http.Response, err error) bool {
	return err == nil && resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != ""
}

// cause says in few words why a request failed. An answer that says no for the request's own sake is none.
func cause(resp *http.Response, err error) string {
	switch {
	case deferred(resp, err):
		return ""
	case err == nil && resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500:
		return ""
	case err == nil:
		return fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case strings.Contains(err.Error(), "client connection lost"):
		return "no answer to a ping"
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(err.Error(), "request canceled"):
		return "no answer in time"
	case strings.Contains(err.Error(), "GOAWAY"):
		return "connection closed in order"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "connection closed"
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return "no connection in time"
	}
	return err.Error()
}
