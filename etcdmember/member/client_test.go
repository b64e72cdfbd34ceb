package member

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// counted counts the connections that a listener accepts.
type counted struct {
	net.Listener
	accepted atomic.Int32
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return c, err
}

// A member is asked over one connection, and by no other after its end: handshakes are a good part of what idle agents
// and members do.
func TestAMemberIsAskedOverTheConnectionThatIsThere(t *testing.T) {
	page := httptest.NewTLSServer(nil) // for its certificate, which names example.com
	defer page.Close()
	roots := x509.NewCertPool()
	roots.AddCert(page.Certificate())
	answers := func(l net.Listener) {
		s := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&page.TLS.Certificates[0])))
		t.Cleanup(s.Stop)
		_ = s.Serve(l)
	}
	trust := &tls.Config{RootCAs: roots}
	for name, c := range map[string]struct {
		serve   func(l net.Listener)
		dnsName string
		serves  bool
	}{
		"a member":                   {serve: answers, dnsName: "example.com", serves: true},
		"with another's certificate": {serve: answers, dnsName: "example.net"},
		"one that says nothing":      {serve: func(l net.Listener) { _, _ = l.Accept() }, dnsName: "example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			plain, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			l := &counted{Listener: plain}
			go c.serve(l)
			conn, err := net.Dial("tcp", plain.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			client, err := DialOver(conn, c.dnsName, trust)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if got := Serves(ctx, client); got != c.serves {
				t.Errorf("it serves: %v, want %v", got, c.serves)
			}
			if c.serves {
				_, err := client.Status(ctx, ClientURL(c.dnsName))
				if status.Code(err) != codes.Unimplemented { // gRPC's answer: it came to the server
					t.Errorf("asked for its status: %v", err)
				}
			}
			if n := l.accepted.Load(); n != 1 {
				t.Errorf("%d connections, want 1", n)
			}
			if !c.serves {
				return
			}
			conn.Close()
			for err = nil; ctx.Err() == nil && !strings.Contains(fmt.Sprint(err), errConnectionEnded.Error()); {
				err = client.ActiveConnection().Invoke(ctx, "/nothing/Asked", &emptypb.Empty{}, &emptypb.Empty{})
			}
			if ctx.Err() != nil {
				t.Errorf("after the connection's end: %v", err)
			}
		})
	}
}
