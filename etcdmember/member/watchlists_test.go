package member

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/etcdtest"
)

const (
	// listed objects of so many bytes are one large list: 10 MiB.
	listed, listedBytes = 2560, 4096
	lists               = 10
	// written is how many events the watch gets, one each pace.
	written, pace = 400, 10 * time.Millisecond
	// putters write at the same time while nobody lists.
	putters, putTime = 50, 3 * time.Second
	// watchRounds are taken in turns, because machines are never quiet for long.
	watchRounds = 3
)

// serverEnv tells this test's program that it is a member of the benchmark, and which.
const serverEnv, ownPorts, onePort = "QUORATE_TEST_SERVER", "own-ports", "one-port"

// BenchmarkWatchBesideLargeLists measures how late a watch hears of a write while ten large lists run on the same
// connection, as an apiserver's may, and how many small writes a second are taken. Each is measured with the member as
// it is, and with one that serves gRPC and HTTP on one port, as etcd does where nothing else is said. The member is a
// process of its own; its clients share the machine with it.
func BenchmarkWatchBesideLargeLists(b *testing.B) {
	for round := range watchRounds {
		for _, which := range []string{onePort, ownPorts} {
			b.Run(fmt.Sprintf("%s/round-%d", which, round+1), func(b *testing.B) { watchBesideLists(b, which) })
		}
	}
}

func watchBesideLists(b *testing.B, which string) {
	r := etcdtest.NewReplica(b)
	cfg := ConfigFor(r.Me, r.Cluster, r.Files, r.RunDir)
	cfg.New, cfg.Token = true, "token"
	startProcess(b, cfg, which)
	clients, err := certs.EtcdTLS(r.Files)
	if err != nil {
		b.Fatal(err)
	}
	reader, writer := benchClient(b, cfg, clients), benchClient(b, cfg, clients)
	fillLists(b, writer)
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
}

// startProcess runs a member in a process of its own for as long as the benchmark takes.
func startProcess(b *testing.B, cfg Config, which string) {
	b.Helper()
	path := ConfigOf(cfg.StatusSocket)
	if err := cfg.Save(path); err != nil {
		b.Fatal(err)
	}
	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"="+which+" "+path)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
}

// runServer is the process of startProcess.
func runServer(said string) error {
	which, path, _ := strings.Cut(said, " ")
	cfg, err := LoadConfig(path)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if which == ownPorts {
		return Run(ctx, cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	}
	e, err := cfg.embedConfig()
	if err != nil {
		return err
	}
	e.ListenClientHttpUrls = nil
	member, err := embed.StartEtcd(e)
	if err != nil {
		return err
	}
	<-ctx.Done()
	member.Close()
	return nil
}

func benchClient(b *testing.B, cfg Config, clients *tls.Config) *clientv3.Client {
	b.Helper()
	c, err := Dial(cfg.DNSName, cfg.Local, clients)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// fillLists writes what is listed, once the member serves.
func fillLists(b *testing.B, c *clientv3.Client) {
	b.Helper()
	value := strings.Repeat("x", listedBytes)
	for first := 0; first < listed; first += 64 {
		var all []clientv3.Op
		for i := range 64 {
			all = append(all, clientv3.OpPut(fmt.Sprintf("list/%05d", first+i), value))
		}
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		_, err := c.Txn(ctx).Then(all...).Commit()
		if cancel(); err != nil {
			b.Fatal(err)
		}
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
			if _, err := writer.Put(b.Context(), "watched/key", strconv.FormatInt(time.Now().UnixNano(), 10)); err != nil {
				b.Error(err)
			}
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
				if _, err := c.Put(b.Context(), fmt.Sprintf("put/%d", i), "value"); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	wait.Wait()
	return float64(n.Load()) / time.Since(begin).Seconds()
}
