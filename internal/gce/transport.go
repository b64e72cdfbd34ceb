package gce

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// metadataAddress is fixed by GCE for every VM, and needs no resolver.
	metadataAddress = "169.254.169.254"
	// maxBody is above what a VM's metadata can hold (512 KiB of attributes, escaped).
	maxBody = 2 << 20
	// dialTimeout: the metadata server is on the VM's own host.
	dialTimeout = 2 * time.Second
)

// newPlainTransport is a transport that neither a proxy nor the environment can lead elsewhere.
func newPlainTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return &http.Transport{DialContext: dialer.DialContext, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 2}
}

// newCloudTransport reaches Google's services, also through a proxy of the environment. A request in the clear, which
// may carry a token, goes past the proxy.
func newCloudTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = func(req *http.Request) (*url.URL, error) {
		if req.URL.Scheme != "https" {
			return nil, nil
		}
		return http.ProxyFromEnvironment(req)
	}
	// Without pings a connection that a partition has killed would be used, and time out, until TCP gives up after
	// minutes.
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 3 * time.Second}
	// For those who send much and therefore set no time for a whole request: counted from its end on.
	t.ResponseHeaderTimeout = 30 * time.Second
	return t
}

// direct is a client that follows no redirect: the next server would be sent the token.
func direct(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: refuseRedirects}
}

// refuseRedirects hands a redirect to the caller as the answer: none of our servers sends one to what we ask.
func refuseRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// pinned sends every request to one host, whatever the official client makes of GCE_METADATA_HOST, and lets only
// a metadata server's "this is the value" (200) and "there is none" (404) through; all else becomes an error here, in a
// form that the official client does not retry: it would do so inside each of our tries and hide what it met.
type pinned struct {
	host string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p pinned) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = "http", p.host, p.host
	res, err := p.next.RoundTrip(req)
	if err != nil {
		return nil, failedTry{err.Error()}
	}
	if err := judgeAnswer(res); err != nil {
		res.Body.Close()
		return nil, err
	}
	res.Body = &limitedBody{ReadCloser: res.Body, left: maxBody}
	return res, nil
}

// failedTry is an error that may pass. It hides its cause, and with it the marks by which the official client retries.
type failedTry struct{ text string }

func (e failedTry) Error() string { return e.text }

// judgeAnswer refuses what no metadata server says, and turns refusals into errors. A real one marks each answer and
// says how long it is; only where we would believe the answer does that matter.
func judgeAnswer(res *http.Response) error {
	html := strings.HasPrefix(res.Header.Get("Content-Type"), "text/html")
	marked := res.Header.Get("Metadata-Flavor") == "Google"
	switch code := res.StatusCode; {
	case code >= 300 && code < 400:
		return finalError{fmt.Errorf("found a redirect (%s) to %q, which is no metadata server's answer", res.Status,
			shorten(res.Header.Get("Location")))}
	case code != http.StatusOK && code != http.StatusNotFound:
		return refusedBy(res)
	case !marked:
		return finalError{fmt.Errorf("found an answer (%s, %s) without the header Metadata-Flavor: Google; something "+
			"else than a metadata server answers at this address", res.Status, contentType(res))}
	case code == http.StatusOK && html:
		return finalError{errors.New("found a web page; something else than a metadata server answers at this address")}
	case code == http.StatusOK && !delimited(res):
		return failedTry{"found an answer that does not say how long it is: its end may be missing"}
	}
	return nil
}

// delimited: a connection that breaks is told from the end of the answer. Chunks and compression have an end of their
// own.
func delimited(res *http.Response) bool {
	return res.ContentLength >= 0 || len(res.TransferEncoding) > 0 || res.Uncompressed
}

// refusedBy says what a server answered in place of a value.
func refusedBy(res *http.Response) error {
	start, _ := io.ReadAll(io.LimitReader(res.Body, maxShown)) // the status says enough where the words are cut off
	text := fmt.Sprintf("found status %d: %q", res.StatusCode, start)
	if passing(res.StatusCode) {
		return failedTry{text}
	}
	return finalError{errors.New(text)}
}

// passing are the statuses that a server may outgrow.
func passing(status int) bool {
	return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

func contentType(res *http.Response) string {
	if t := res.Header.Get("Content-Type"); t != "" {
		return shorten(t)
	}
	return "no content type"
}

// limitedBody fails, rather than ends, behind its limit: a shortened value would be taken for the whole.
type limitedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, finalError{fmt.Errorf("found an answer above %d bytes, which no metadata is", maxBody)}
	}
	return n, err
}
