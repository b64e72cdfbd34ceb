package localgce

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// metadataName is the one name that the VMs' name server knows.
const metadataName = "metadata.google.internal."

// resolverTimeout ends a connection on which nothing is asked.
const resolverTimeout = 2 * time.Second

// serveNamesAndTime opens what Google serves at the metadata server's address besides: DNS and NTP.
func (p *Project) serveNamesAndTime(v *vm, m *machine) error {
	err := inNamespace(p.names.vm(v.Slot), func() error {
		names, err := net.ListenPacket("udp4", metadataAddress+":53")
		if err != nil {
			return err
		}
		m.closers = append(m.closers, names)
		p.tasks.Go(func() { serveNames(names) })
		streams, err := net.Listen("tcp4", metadataAddress+":53")
		if err != nil {
			return err
		}
		m.closers = append(m.closers, streams)
		p.tasks.Go(func() { serveNameStreams(streams) })
		clock, err := net.ListenPacket("udp4", metadataAddress+":123")
		if err != nil {
			return err
		}
		m.closers = append(m.closers, clock)
		p.tasks.Go(func() { serveTime(clock) })
		return nil
	})
	if err != nil {
		return fmt.Errorf("open the name and time server: %w", err)
	}
	return nil
}

// serveNames answers DNS by datagrams, until the socket is closed.
func serveNames(socket net.PacketConn) {
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

// serveNameStreams answers DNS by connections, one after the other: few ask this way.
func serveNameStreams(listener net.Listener) {
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
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(metadataAddress).As4()},
			}}
		}
	}
	return reply.Pack()
}
