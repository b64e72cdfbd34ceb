package resolver_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce/resolver"
)

func TestTheNameServerKnowsTheMetadataServerAlone(t *testing.T) {
	packets, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close(); streams.Close() })
	go resolver.ServeNames(packets)
	go resolver.ServeNameStreams(streams)
	for network, address := range map[string]string{"udp": packets.LocalAddr().String(),
		"tcp": streams.Addr().String()} {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}
		if got, err := r.LookupHost(t.Context(), "metadata.google.internal."); err != nil || len(got) != 1 ||
			got[0] != "169.254.169.254" {
			t.Errorf("by %s: %q, %v", network, got, err)
		}
		var missing *net.DNSError
		if got, err := r.LookupHost(t.Context(), "example.com."); !errors.As(err, &missing) || !missing.IsNotFound {
			t.Errorf("another name, by %s: %q, %v", network, got, err)
		}
	}
}

func TestTheTimeServerHasTheMachinesClock(t *testing.T) {
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go resolver.ServeTime(server)
	conn, err := net.Dial("udp4", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	query := make([]byte, 48)
	query[0] = 4<<3 | 3 // version 4, a client
	copy(query[40:], "when-ask")
	reply := make([]byte, 64)
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, q := range [][]byte{{1}, query} { // the first is no question, and not answered
		if _, err := conn.Write(q); err != nil {
			t.Fatal(err)
		}
	}
	n, err := conn.Read(reply)
	if err != nil || n != 48 || string(reply[24:32]) != "when-ask" || reply[0]&7 != 4 {
		t.Fatalf("%x, %v", reply[:n], err)
	}
	const from1900 = 2208988800
	said := time.Unix(int64(binary.BigEndian.Uint32(reply[40:]))-from1900, 0)
	if off := time.Since(said); off < 0 || off > time.Minute {
		t.Errorf("the server says %s", said)
	}
}
