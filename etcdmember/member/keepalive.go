package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/etcdmember/table"
)

// This file has etcd notice within 5 s that a peer is out of reach, as etcd meant to.
//
// A member reads what a peer sends from a stream, a connection that it has dialled itself, and should dial again when
// that was silent for 5 s (rafthttp.ConnReadTimeout; a stream is never silent for longer than a third of that). It does
// not: NewTimeoutTransport (etcd's client/pkg/transport/timeout_transport.go) puts the dialer with that time-out into
// http.Transport.Dial, and NewTransport had already set DialContext, which net/http prefers. So a stream that a cut has
// silenced stays until TCP gives up, and when the cut heals, goes on only when the sender's TCP happens to send again:
// the pause between two tries has grown with the cut, up to two minutes. A follower lagged for 25 s after a cut of 30 s
// in one direction.
//
// What is done instead is left to the kernel: it asks a silent peer's kernel whether it is there, and ends the
// connection where no answer comes. etcd then reads an error, says so in its log and dials again. So a connection that
// was dialled to a peer which can be reached is never ended, however long its member has nothing to say or hangs; what
// waits for an answer is treated apart (see owed).
//
// What a peer has dialled is the stream that this member writes. There the kernel gives up what it has sent and nobody
// has confirmed for 3 s. Without that a stream to a VM that is gone takes what is written until the socket's buffer is
// full; after some 15 s of heartbeats it is, and then one write blocks for 5 s (rafthttp.ConnWriteTimeout). A leader
// that removes the member meanwhile waits for that write, with the lock that every message of raft needs
// (Transport.RemovePeer): the cluster wrote nothing for up to 7 s, just when its master was being replaced.

// keepalive is how the kernel asks after the other end of a connection: first after idle seconds of silence, then each
// interval seconds, until so many probes in a row were not answered.
type keepalive struct{ idle, interval, probes int }

var (
	// promptly ends a connection after 5 s without a sign of its peer, rafthttp.ConnReadTimeout.
	promptly = keepalive{idle: 2, interval: 1, probes: 3}
	// patiently is what etcd's dialer sets (30 s; the rest are net.KeepAliveConfig's defaults): 165 s.
	patiently = keepalive{idle: 30, interval: 15, probes: 9}
)

// watchPeers watches this process's connections to peers until it is stopped.
func watchPeers(ctx context.Context, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(peersPeriod)
		defer ticker.Stop()
		for failed := false; ctx.Err() == nil; {
			err := askAfterPeers()
			if err != nil && !failed {
				log.Warn("connections to peers are not watched", "err", err.Error())
			}
			failed = err != nil
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// askAfterPeers gives each connection that this process has dialled to a peer its keepalive, and each that a peer has
// dialled its time-out. etcd does not hand out its connections, so all sockets are examined, whatever becomes of one.
func askAfterPeers() error {
	const dir = "/proc/self/fd"
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list the open files: %w", err)
	}
	var failed []error
	for _, f := range files {
		// Most are something else: a socket of a client, the database, the log.
		if fd, err := strconv.Atoi(f.Name()); err == nil && (toPeer(fd) || fromPeer(fd)) {
			failed = append(failed, askAfter(fd))
		}
	}
	return errors.Join(failed...)
}

// askAfter works on a duplicate: the number may be another file's at any moment, and what is seen and what is set have
// to be one socket's.
func askAfter(fd int) error {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil // closed meanwhile
	}
	defer unix.Close(fd)
	if fromPeer(fd) {
		return giveUpUnconfirmed(fd)
	}
	if !toPeer(fd) {
		return nil
	}
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return fmt.Errorf("examine a connection to a peer: %w", err)
	}
	if owed(info) {
		return patiently.set(fd)
	}
	return promptly.set(fd)
}

// toPeer reports whether a socket is a connection to some member's peer port.
func toPeer(fd int) bool {
	a, _ := unix.Getpeername(fd)
	return onPeerPort(a)
}

// fromPeer reports whether a socket is a connection to this member's own peer port. The listening one is none: Go makes
// it one of Multipath TCP, which does not have the option.
func fromPeer(fd int) bool {
	if _, err := unix.Getpeername(fd); err != nil {
		return false
	}
	a, _ := unix.Getsockname(fd)
	return onPeerPort(a)
}

func onPeerPort(a unix.Sockaddr) bool {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Port == table.PeerPort
	case *unix.SockaddrInet6:
		return a.Port == table.PeerPort
	}
	return false // not connected, or no such socket
}

// giveUpUnconfirmed has the kernel end a connection on which the peer's kernel has confirmed nothing for unconfirmed,
// or its member has read nothing for so long and the buffers are full. It does not end one that only receives: a
// snapshot.
func giveUpUnconfirmed(fd int) error {
	most := int(unconfirmed.Milliseconds())
	if is, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); err == nil && is == most {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, most); err != nil {
		return fmt.Errorf("bound what a peer may leave unconfirmed: %w", err)
	}
	return nil
}

// owed reports whether the peer still owes an answer: we were the last to send. It is so for the POST of a snapshot,
// and when its receiver writes 8 GB to the disk the answer takes half a minute; ended meanwhile, by a cut of 5 s, the
// whole snapshot would be sent again. A stream is one request, and what the peer has sent since. A request so short
// that it was gone before the peer had sent the last of the TLS handshake passes for a stream: a few messages, which
// raft sends again.
func owed(info *unix.TCPInfo) bool { return info.Last_data_sent < info.Last_data_recv }

// set changes nothing where it is set already: each change makes the kernel count the silence anew.
func (k keepalive) set(fd int) error {
	idle, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
	if err == nil && idle == k.idle {
		return nil
	}
	for _, option := range []struct{ name, value int }{
		// the last one starts the clock
		{unix.TCP_KEEPINTVL, k.interval}, {unix.TCP_KEEPCNT, k.probes}, {unix.TCP_KEEPIDLE, k.idle},
	} {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option.name, option.value); err != nil {
			return fmt.Errorf("have a peer asked after: %w", err)
		}
	}
	return nil
}
