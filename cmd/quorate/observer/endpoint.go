package observer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/replica"
)

// endpointTimeout is how long an answer of the endpoint may take: a balancer without a master that is ready says
// nothing.
const endpointTimeout = 2 * time.Second

// Endpoint asks whether the cluster's endpoint serves. It sends nothing that is secret and believes nothing but the
// status, so it asks for no certificate: the CA is in the sealed bundle, and who asks need not be able to open that.
type Endpoint struct {
	addresses []string
	client    *http.Client
}

// newEndpoint leaves out addresses that this machine has itself: a master's routes take the endpoint for its own, and
// its own apiserver says nothing about the others.
func newEndpoint(c *replica.Cluster) *Endpoint {
	e := &Endpoint{client: &http.Client{Timeout: endpointTimeout, Transport: &http.Transport{
		// A connection that is kept would go to the same master again, also to one that was shot.
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
		DialContext:       (&net.Dialer{Timeout: endpointTimeout}).DialContext,
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	for _, ip := range []string{c.Endpoint.ExternalIP, c.Endpoint.InternalIP} {
		if address := net.JoinHostPort(ip, strconv.Itoa(c.Endpoint.Port)); ip != "" && !isOwn(address) {
			e.addresses = append(e.addresses, address)
		}
	}
	return e
}

// isOwn reports whether this machine takes an address for its own. Nothing is sent. A loopback address is everybody's.
func isOwn(address string) bool {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return false // there is no way to it
	}
	defer conn.Close()
	from, _ := conn.LocalAddr().(*net.UDPAddr)
	to, _ := conn.RemoteAddr().(*net.UDPAddr)
	return from.IP.Equal(to.IP) && !to.IP.IsLoopback()
}

// Ask asks the first address, and where that does not answer the next: from inside the network only the internal one
// may be reached.
func (e *Endpoint) Ask(ctx context.Context) *health.Endpoint {
	var first *health.Endpoint
	for _, address := range e.addresses {
		answer := e.askOne(ctx, address)
		if answer.Code != 0 {
			return answer
		}
		if first == nil {
			first = answer
		}
	}
	return first
}

func (e *Endpoint) askOne(ctx context.Context, address string) *health.Endpoint {
	out := &health.Endpoint{Address: address}
	begin := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", nil)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	res, err := e.client.Do(req)
	if err != nil {
		out.Error = shortError(err)
		return out
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // the status says all
	out.Code, out.Took = res.StatusCode, time.Since(begin).Seconds()
	return out
}

// shortError leaves out of an error what its reader knows: the address that was asked.
func shortError(err error) string {
	var asked *url.Error
	if errors.As(err, &asked) {
		if asked.Timeout() {
			return "nothing within " + endpointTimeout.String()
		}
		err = asked.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}
