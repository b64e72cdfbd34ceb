package etcdmember

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
)

// A running replica asks each member over the connection of the time before, as long as that is of use. By one that is
// not it is answered all the same.
func TestAMemberIsAskedAgainOverTheSameConnection(t *testing.T) {
	f := newFounder(t)
	var handshakes atomic.Int32
	counting := func() *tls.Config {
		c := f.tls.Clone()
		c.VerifyConnection = func(tls.ConnectionState) error { handshakes.Add(1); return nil }
		return c
	}
	config := counting()
	k := &asker{cluster: testCluster, tls: func() *tls.Config { return config }, linePatience: serveTimeout}
	t.Cleanup(k.lines.dropAll)
	to := []target{{Place: pb, instanceID: "102", address: f.cfg.Local}}
	ask := func(what string, want int32) {
		t.Helper()
		before := handshakes.Load()
		a := k.ask(t.Context(), to)[0]
		if a.Reach != table.ReachLinearizable || len(a.Members) != 1 || a.Version == "" || a.InstanceID != "102" {
			t.Fatalf("%s: %+v", what, a)
		}
		if now := handshakes.Load() - before; now != want {
			t.Errorf("%s: %d handshakes, want %d", what, now, want)
		}
	}
	free := func() *line {
		k.lines.mu.Lock()
		defer k.lines.mu.Unlock()
		return k.lines.free[lineTo{f.cfg.Local, f.cfg.DNSName}]
	}
	ask("the first", 1)
	ask("the second", 0)
	ask("the third", 0)

	free().close()
	ask("after the line was closed", 1)
	free().opened = time.Now().Add(-lineLife)
	ask("over an old line", 1)
	k.lines.drop(free())
	ask("after a line was not used", 1)
	config = counting()
	ask("with other certificates", 1)
	k.lines.dropAll()
	ask("after all were closed", 1)

	// A member that has stopped answering by a line, as one that was cut off without a word.
	k.lines.dropAll()
	relay, stop := relayTo(t, netip.AddrPortFrom(f.cfg.Local, member.ClientPort).String())
	hangs, err := openLine(relay, lineTo{f.cfg.Local, f.cfg.DNSName}, config)
	if err != nil {
		t.Fatal(err)
	}
	if ctx := t.Context(); !member.Serves(ctx, hangs.client) {
		t.Fatal("the member does not serve by the relay")
	}
	k.lines.keep(hangs)
	ask("by the relay", 0)
	stop()
	k.linePatience = lineTimeout
	ask("over a line that hangs", 1)
	if free() == hangs {
		t.Error("the line that hangs is kept")
	}
}

// relayTo is a connection by way of this process, which passes on what is sent until it is stopped, and then takes it
// and does not.
func relayTo(t *testing.T, address string) (near net.Conn, stop func()) {
	t.Helper()
	near, middle := net.Pipe()
	far, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); middle.Close(); far.Close() })
	var stopped atomic.Bool
	pass := func(to, from net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			if !stopped.Load() {
				_, _ = to.Write(buffer[:n])
			}
		}
	}
	go pass(far, middle)
	go pass(middle, far)
	return near, func() { stopped.Store(true) }
}

// A line that has ended while nobody used it is not asked by.
func TestALineThatHasEndedIsNotTaken(t *testing.T) {
	f := newFounder(t)
	k := &asker{cluster: testCluster, tls: func() *tls.Config { return f.tls }, linePatience: serveTimeout}
	t.Cleanup(k.lines.dropAll)
	to := []target{{Place: pb, instanceID: "102", address: f.cfg.Local}}
	key := lineTo{f.cfg.Local, f.cfg.DNSName}
	k.ask(t.Context(), to)
	l := k.lines.take(key, f.tls)
	if l == nil {
		t.Fatal("no line is kept")
	}
	k.lines.keep(l)
	l.conn.Close() // as the member, or the network, ends it
	etcdtest.Eventually(t, "gRPC has seen the end", func() bool {
		return l.client.ActiveConnection().GetState() != connectivity.Ready
	})
	if k.lines.take(key, f.tls) != nil {
		t.Error("the line is taken")
	}
	if a := k.ask(t.Context(), to)[0]; a.Reach != table.ReachLinearizable {
		t.Errorf("asked anew: %+v", a)
	}
}
