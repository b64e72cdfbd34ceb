package member

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/etcdtest"
)

// serving is a member in this process with a configuration that may be changed before its start, and its clients' TLS.
func serving(t testing.TB, change func(*embed.Config)) (cfg Config, clients *tls.Config) {
	t.Helper()
	r := etcdtest.NewReplica(t)
	cfg = ConfigFor(r.Me, r.Cluster, r.Files, r.RunDir)
	cfg.New, cfg.Token = true, "token"
	e, err := cfg.embedConfig()
	if err != nil {
		t.Fatal(err)
	}
	change(e)
	member, err := embed.StartEtcd(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(member.Close)
	<-member.Server.ReadyNotify()
	if clients, err = certs.EtcdTLS(r.Files); err != nil {
		t.Fatal(err)
	}
	return cfg, clients
}

// gRPC has a port of its own, at which nothing speaks HTTP; HTTP is at loopback, and wants a certificate.
func TestHTTPHasAPortOfItsOwn(t *testing.T) {
	cfg, clients := serving(t, func(*embed.Config) {})
	clients = clients.Clone()
	clients.ServerName = cfg.DNSName
	ask := func(c *tls.Config, address netip.Addr, port int) (string, error) {
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: c,
			DisableKeepAlives: true}}
		r, err := client.Get("https://" + netip.AddrPortFrom(address, uint16(port)).String() + "/health")
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		return string(b), err
	}
	if text, err := ask(clients, cfg.Local, httpPort); err != nil || !strings.Contains(text, `"health":"true"`) {
		t.Errorf("the port for HTTP says %q, %v", text, err)
	}
	for _, address := range []netip.Addr{cfg.Local, cfg.Address} {
		if text, err := ask(clients, address, ClientPort); err == nil {
			t.Errorf("the port for gRPC at %s speaks HTTP: %q", address, text)
		}
	}
	if text, err := ask(clients, cfg.Address, httpPort); err == nil {
		t.Errorf("HTTP is served beyond loopback: %q", text)
	}
	stranger := &tls.Config{RootCAs: clients.RootCAs, ServerName: cfg.DNSName}
	if text, err := ask(stranger, cfg.Local, httpPort); err == nil {
		t.Errorf("HTTP is served to one without a certificate: %q", text)
	}
	c, err := Dial(cfg.DNSName, cfg.Address, clients)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := c.Put(ctx, "key", "value"); err != nil {
		t.Error(err)
	}
}

const (
	// listed is what one large list holds: 10 MiB in 2500 objects.
	listed, listedBytes = 2500, 4096
	lists               = 10
	// written is how many events the watch gets, one each pace.
	written, pace = 400, 10 * time.Millisecond
	// putters write at the same time while nobody lists.
	putters, putTime = 50, 3 * time.Second
)

// BenchmarkWatchBesideLargeLists measures how late a watch hears of a write while ten large lists run on the same
// connection, as an apiserver's may, and how many small writes a second are taken. Each is measured with HTTP on a port
// of its own, which is what members have, and with both on one port. Client and server share the machine.
func BenchmarkWatchBesideLargeLists(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(*embed.Config)
	}{
		{"own-ports", func(*embed.Config) {}},
		{"one-port", func(e *embed.Config) { e.ListenClientHttpUrls = nil }},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg, clients := serving(b, c.change)
			dial := func() *clientv3.Client {
				client, err := Dial(cfg.DNSName, cfg.Local, clients)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { client.Close() })
				return client
			}
			reader, writer := dial(), dial()
			for i := range listed {
				put(b, writer, fmt.Sprintf("list/%05d", i), strings.Repeat("x", listedBytes))
			}
			for b.Loop() {
				delays, answers := besideLists(b, reader, writer)
				slices.Sort(delays)
				ms := func(share float64) float64 {
					return float64(delays[min(int(share*float64(len(delays))), len(delays)-1)].Microseconds()) / 1000
				}
				b.ReportMetric(ms(0.5), "ms-p50")
				b.ReportMetric(ms(0.99), "ms-p99")
				b.ReportMetric(answers, "lists/s")
				b.ReportMetric(puts(b, writer), "puts/s")
			}
		})
	}
}

func put(b *testing.B, c *clientv3.Client, key, value string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	if _, err := c.Put(ctx, key, value); err != nil {
		b.Error(err)
	}
}

// besideLists are the times from each write to its event, and how many lists were answered a second.
func besideLists(b *testing.B, reader, writer *clientv3.Client) (delays []time.Duration, answers float64) {
	ctx, cancel := context.WithCancel(b.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	events := reader.Watch(clientv3.WithRequireLeader(ctx), "watched/", clientv3.WithPrefix(),
		clientv3.WithCreatedNotify())
	<-events
	var answered atomic.Int64
	for range lists {
		wait.Go(func() {
			for ctx.Err() == nil {
				if _, err := reader.Get(ctx, "list/", clientv3.WithPrefix()); err == nil {
					answered.Add(1)
				}
			}
		})
	}
	time.Sleep(time.Second) // all of them run
	begin, before := time.Now(), answered.Load()
	wait.Go(func() {
		for range written {
			put(b, writer, "watched/key", strconv.FormatInt(time.Now().UnixNano(), 10))
			time.Sleep(pace)
		}
	})
	for len(delays) < written {
		select {
		case response := <-events:
			for _, event := range response.Events {
				sent, err := strconv.ParseInt(string(event.Kv.Value), 10, 64)
				if err != nil {
					b.Fatal(err)
				}
				delays = append(delays, time.Since(time.Unix(0, sent)))
			}
		case <-time.After(2 * time.Minute):
			b.Fatalf("the watch has %d of %d events", len(delays), written)
		}
	}
	return delays, float64(answered.Load()-before) / time.Since(begin).Seconds()
}

// puts is how many small writes a second are taken.
func puts(b *testing.B, c *clientv3.Client) float64 {
	var n atomic.Int64
	var wait sync.WaitGroup
	begin := time.Now()
	for i := range putters {
		wait.Go(func() {
			for time.Since(begin) < putTime {
				put(b, c, fmt.Sprintf("put/%d", i), "value")
				n.Add(1)
			}
		})
	}
	wait.Wait()
	return float64(n.Load()) / time.Since(begin).Seconds()
}
