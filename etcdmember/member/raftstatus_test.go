package member

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/certs"
)

// serving starts a member in this process and waits until it serves. clients is the TLS of the agent as a client.
func serving(t *testing.T) (cfg Config, clients *tls.Config, stop func()) {
	t.Helper()
	cfg, files := newTestMember(t)
	clients, err := certs.EtcdTLS(files)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, clients, serve(t, cfg)
}

// serve is serving with a configuration that is there.
func serve(t *testing.T, cfg Config) (stop func()) {
	t.Helper()
	e, port, err := startMember(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	<-e.Server.ReadyNotify()
	return func() { stopMember(e, port) }
}

// dial makes a client of a test's member at one of its addresses.
func dial(t *testing.T, cfg Config, address netip.Addr, clients *tls.Config) *clientv3.Client {
	t.Helper()
	c, err := Dial(cfg.DNSName, address, clients)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Masters of the release before ask by HTTP, and answer nothing else.
func TestRaftIsToldToThisReleaseAndTheOneBefore(t *testing.T) {
	cfg, clients, stop := serving(t)
	want := func(which string, ask func(context.Context, string, netip.Addr, *tls.Config) (RaftStatus, error)) {
		t.Helper()
		s, err := ask(t.Context(), cfg.DNSName, cfg.Address, clients)
		if err != nil || s.State != "StateLeader" || s.Commit == 0 || len(s.Progress) != 1 {
			t.Errorf("%s: %+v, %v", which, s, err)
		}
		for id, p := range s.Progress {
			if p.Match < s.Commit {
				t.Errorf("%s: %s acknowledged %d, and %d is committed", which, id, p.Match, s.Commit)
			}
		}
	}
	want("this release", AskRaft)
	if _, err := askService(t.Context(), dial(t, cfg, cfg.Address, clients)); err != nil {
		t.Errorf("not by gRPC: %v", err)
	}
	want("the one before asks this one", askFormer)
	stranger := &tls.Config{RootCAs: clients.RootCAs}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if s, err := AskRaft(ctx, cfg.DNSName, cfg.Address, stranger); err == nil {
		t.Errorf("one without a certificate is told %+v", s)
	}
	stop()

	cfg.New = false
	e, err := cfg.embedConfig()
	if err != nil {
		t.Fatal(err)
	}
	e.ListenClientHttpUrls = nil
	former, err := embed.StartEtcd(e)
	if err != nil {
		t.Fatal(err)
	}
	defer former.Close()
	<-former.Server.ReadyNotify()
	want("this one asks the one before", AskRaft)
}

// A learner leads nobody. What else is refused is no such answer.
func TestALearnerAloneLeadsNobody(t *testing.T) {
	cfg, files := newTestMember(t)
	clients, err := certs.EtcdTLS(files)
	if err != nil {
		t.Fatal(err)
	}
	port, err := newClientPort(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", netip.AddrPortFrom(cfg.Address, ClientPort).String())
	if err != nil {
		t.Fatal(err)
	}
	var answer error
	server := grpc.NewServer(grpc.Creds(port), grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return answer
	}))
	defer server.Stop()
	go server.Serve(listener)

	answer = rpctypes.ErrGRPCNotSupportedForLearner
	if s, err := AskRaft(t.Context(), cfg.DNSName, cfg.Address, clients); err != nil || s.State != "" {
		t.Errorf("of a learner: %+v, %v", s, err)
	}
	answer = status.Error(codes.FailedPrecondition, "not now")
	if s, err := AskRaft(t.Context(), cfg.DNSName, cfg.Address, clients); !errors.Is(err, answer) {
		t.Errorf("of a member that refuses: %+v, %v", s, err)
	}
}

func TestAQuestionOfTheFormerReleaseIsBounded(t *testing.T) {
	client, member := net.Pipe()
	defer client.Close()
	go func() {
		answerFormer(member)
		member.Close()
	}()
	n, err := client.Write([]byte("GET " + formerPath + " HTTP/1.1\r\nHost: it\r\nLong: " + strings.Repeat("x", 1<<20)))
	if n > maxRequest || err == nil {
		t.Errorf("%d bytes were read, %v", n, err)
	}
}
