// Package resolver is what Google serves at the metadata server's address besides: names and the time.
package resolver

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// metadataName is the one name that the VMs' name server knows.
const metadataName = "metadata.google.internal."

// resolverTimeout ends a connection on which nothing is asked.
const resolverTimeout = 2 * time.Second

// ServeNames answers DNS by datagrams, until the socket is closed.
func ServeNames(socket net.PacketConn) {
	for query := make([]byte, 1232); ; {
		n, client, err := socket.ReadFrom(query)
		if err != nil {
			return
		}
		if reply, err := nameReply(query[:n]); err == nil {
			_, _ = socket.WriteTo(reply, client) // a datagram may get lost
		}
	}
}

// ServeNameStreams answers DNS by connections, one after the other: few ask this way.
func ServeNameStreams(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(resolverTimeout)) // its only error is that it is closed
		answerStream(conn)
		conn.Close()
	}
}

// answerStream has two bytes of length before each message (RFC 1035 section 4.2.2).
func answerStream(conn net.Conn) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply, err := nameReply(query)
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// nameReply answers one question. All names but the metadata server's do not exist.
func nameReply(query []byte) ([]byte, error) {
	var parser dnsmessage.Parser
	head, err := parser.Start(query)
	if err != nil {
		return nil, err
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{ID: head.ID, Response: true, RecursionDesired: head.RecursionDesired,
			RecursionAvailable: true, RCode: dnsmessage.RCodeNameError},
		Questions: []dnsmessage.Question{question},
	}
	if question.Name.String() == metadataName {
		reply.RCode = dnsmessage.RCodeSuccess
		if question.Type == dnsmessage.TypeA {
			reply.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 60},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(instance.MetadataAddress).As4()},
			}}
		}
	}
	return reply.Pack()
}
