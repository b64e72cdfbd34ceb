package etcdmember

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

// A running replica asks each member over the connection of the time before, as long as that is of use: whatever is
// wrong with it, the answer is the one that a new connection would have brought.
func TestAMemberIsAskedAgainOverTheSameConnection(t *testing.T) {
	f := newFounder(t)
	var handshakes atomic.Int32
	counting := func() *tls.Config {
		c := f.tls.Clone()
		c.VerifyConnection = func(tls.ConnectionState) error { handshakes.Add(1); return nil }
		return c
	}
	config := counting()
	k := &asker{cluster: testCluster, tls: func() *tls.Config { return config }}
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
		return k.lines.free[lineTo{f.cfg.Local, f.cfg.DNSName, config}]
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
	former := free()
	config = counting()
	ask("with other certificates", 1)
	k.lines.drop(former)

	// Somebody who takes connections and says nothing has the place of a kept line.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	conn, err := net.Dial("tcp", silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	hangs, err := openLine(conn, lineTo{f.cfg.Local, f.cfg.DNSName, config})
	if err != nil {
		t.Fatal(err)
	}
	k.lines.take(hangs.to).close()
	k.lines.keep(hangs)
	ask("over a line that hangs", 1)
	if k.lines.take(hangs.to) == hangs {
		t.Error("the line that hangs is kept")
	}
}

// A member that is out of reach is not waited for longer because there was a line to it, and the line is not kept.
func TestALineToAMemberThatHasGoneIsNotKept(t *testing.T) {
	f := newFounder(t)
	k := &asker{cluster: testCluster, tls: func() *tls.Config { return f.tls }}
	gone := addresses("127.0.0.77")[0] // nobody listens there
	to := lineTo{gone, pb.DNSName(testCluster), f.tls}
	near, far := net.Pipe()
	far.Close()
	l, err := openLine(near, to)
	if err != nil {
		t.Fatal(err)
	}
	k.lines.keep(l)
	begin := time.Now()
	a := k.ask(t.Context(), []target{{Place: pb, instanceID: "102", address: gone}})[0]
	if took := time.Since(begin); a.Reach != table.ReachNothing || took > askTimeout {
		t.Errorf("after %s: %+v", took, a)
	}
	if k.lines.take(to) != nil {
		t.Error("the line is kept")
	}
}
