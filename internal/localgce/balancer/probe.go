package balancer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/network"
)

// prober asks backends whether they are ready.
type prober struct {
	namespace string // the fabric's
	asked     atomic.Int64
}

// ask asks one backend at the balanced address, as Google's probers do: the mark leads there. A VM without a local
// route for that address is not ready.
func (p *prober) ask(ctx context.Context, s Service, backend netip.Addr) bool {
	ctx, cancel := context.WithTimeout(ctx, s.Check.Timeout)
	defer cancel()
	sources := s.Probers()
	source := sources[int(p.asked.Add(1))%len(sources)]
	client := &http.Client{
		Transport: &http.Transport{DialContext: p.dialer(backend, source), DisableKeepAlives: true,
			// Google's do not verify certificates either.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	url := "https://" + net.JoinHostPort(s.Address.String(), strconv.Itoa(s.Check.Port)) + s.Check.Path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

// dialer connects from an address of the fabric, with a backend's mark.
func (p *prober) dialer(backend, source netip.Addr) func(context.Context, string, string) (net.Conn, error) {
	marked := &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0)), Control: func(_, _ string,
		c syscall.RawConn) (err error) {
		outer := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, mark(backend))
		})
		return errors.Join(outer, err)
	}}
	return func(ctx context.Context, kind, address string) (conn net.Conn, err error) {
		err = network.In(p.namespace, func() error {
			conn, err = marked.DialContext(ctx, kind, address)
			return err
		})
		return conn, err
	}
}
