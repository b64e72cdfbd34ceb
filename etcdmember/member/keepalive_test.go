package member

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
)

// link is a connection of the test's own, with both of its ends.
type link struct{ dialled, accepted net.Conn }

func linkTo(t *testing.T, to netip.Addr, port uint16) link {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(to, port).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var k link
	// as etcd's dialer has it (client/pkg/transport/transport.go)
	if k.dialled, err = (&net.Dialer{KeepAlive: 30 * time.Second}).Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if k.accepted, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.dialled.Close(); k.accepted.Close() })
	return k
}

// pass sends a byte from one end to the other, later than all that was sent before by the clock of the kernel's
// figures.
func pass(t *testing.T, from, to net.Conn) {
	t.Helper()
	time.Sleep(20 * time.Millisecond)
	if _, err := from.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// keepaliveOf is what is set for one end.
func keepaliveOf(t *testing.T, c net.Conn) keepalive {
	t.Helper()
	return keepalive{idle: option(t, c, unix.TCP_KEEPIDLE), interval: option(t, c, unix.TCP_KEEPINTVL),
		probes: option(t, c, unix.TCP_KEEPCNT)}
}

// option is one of TCP's that is set for one end.
func option(t *testing.T, c net.Conn, name int) (value int) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	failed := raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name) })
	if err := errors.Join(failed, err); err != nil {
		t.Fatal(err)
	}
	return value
}

// etcd listens meanwhile, and not all that is set for a connection can be set for a socket that listens.
func TestConnectionsFromPeersHaveTheirTimeOut(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	l, err := net.Listen("tcp", netip.AddrPortFrom(etcdtest.Address(0), table.PeerPort).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if err := askAfterPeers(); err != nil {
		t.Fatal(err)
	}
	if got := option(t, accepted, unix.TCP_USER_TIMEOUT); got != int(unconfirmed.Milliseconds()) {
		t.Errorf("what is accepted ends %d ms after what was not confirmed", got)
	}
	if got := option(t, dialled, unix.TCP_USER_TIMEOUT); got != 0 {
		t.Errorf("what is dialled ends %d ms after what was not confirmed", got)
	}
}

// endsWithin reports whether an end's reader gets an error other than that of its own deadline.
func endsWithin(t *testing.T, c net.Conn, limit time.Duration) bool {
	t.Helper()
	since := time.Now()
	c.SetReadDeadline(since.Add(limit))
	_, err := c.Read(make([]byte, 1))
	t.Logf("%s -> %s: %v after %s", c.LocalAddr(), c.RemoteAddr(), err, time.Since(since).Round(time.Millisecond))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// writesEnd fills a connection, and reports whether its writer gets an error other than that of its own deadline.
func writesEnd(t *testing.T, c net.Conn, limit time.Duration) bool {
	t.Helper()
	since := time.Now()
	c.SetWriteDeadline(since.Add(limit))
	var err error
	for n := 0; err == nil && n < 1<<10; n++ {
		_, err = c.Write(make([]byte, 64<<10))
	}
	t.Logf("%s -> %s: %v after %s", c.LocalAddr(), c.RemoteAddr(), err, time.Since(since).Round(time.Millisecond))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestAStreamFromAPeerThatIsOutOfReachEnds(t *testing.T) {
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	gone, there := etcdtest.Address(0), etcdtest.Address(1)
	stream := linkTo(t, gone, table.PeerPort)
	pass(t, stream.dialled, stream.accepted)
	pass(t, stream.accepted, stream.dialled)
	snapshot := linkTo(t, gone, table.PeerPort)
	pass(t, snapshot.accepted, snapshot.dialled)
	client := linkTo(t, gone, ClientPort)
	pass(t, client.accepted, client.dialled)
	written := linkTo(t, gone, table.PeerPort)
	silent := linkTo(t, there, table.PeerPort)
	pass(t, silent.accepted, silent.dialled)

	look := func() {
		t.Helper()
		if err := askAfterPeers(); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, c net.Conn, want keepalive) {
		t.Helper()
		if got := keepaliveOf(t, c); got != want {
			t.Errorf("%s has %+v, want %+v", what, got, want)
		}
	}
	want("what etcd dials", stream.dialled, patiently)
	accepted := keepaliveOf(t, stream.accepted)
	look()
	want("a stream", stream.dialled, promptly)
	want("a stream's other end", stream.accepted, accepted)
	want("a connection to another port", client.dialled, patiently)
	want("a connection that waits for no answer", snapshot.dialled, promptly)
	pass(t, snapshot.dialled, snapshot.accepted)
	look()
	want("one that waits for an answer", snapshot.dialled, patiently)
	pass(t, snapshot.accepted, snapshot.dialled)
	look()
	want("one that has its answer", snapshot.dialled, promptly)
	pass(t, snapshot.dialled, snapshot.accepted)
	look()

	for _, rule := range []string{"add table ip cut", "add chain ip cut out { type filter hook output priority 0; }",
		"add rule ip cut out ip daddr " + gone.String() + " drop"} {
		if out, err := exec.CommandContext(t.Context(), "nft", rule).CombinedOutput(); err != nil {
			t.Fatalf("nft %s: %v: %s", rule, err, out)
		}
	}
	if !writesEnd(t, written.accepted, 4500*time.Millisecond) {
		t.Error("a write to a peer that is out of reach blocks")
	}
	if !endsWithin(t, stream.dialled, 8*time.Second) {
		t.Error("a stream from a peer that is out of reach goes on")
	}
	for what, c := range map[string]net.Conn{"what waits for an answer": snapshot.dialled, "a client's": client.dialled,
		"a peer's that has nothing to say": silent.dialled} {
		if endsWithin(t, c, 50*time.Millisecond) {
			t.Errorf("%s connection was ended", what)
		}
	}
}
