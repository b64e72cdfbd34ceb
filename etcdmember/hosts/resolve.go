package hosts

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Resolver returns a resolver that reads the hosts file at every question. Go's own reads it at most once in
// five seconds (net/hosts.go), so that a member would not find a peer that joins until then: its agent writes the name,
// and the member goes on with the former content. Go asks its cache first and then a name server; this one is inside
// the process.
func Resolver(path string) *net.Resolver {
	return &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go answerFromHosts(theirs, path)
			return ours, nil
		},
	}
}

// answerFromHosts speaks DNS over a stream (RFC 1035 section 4.2.2: two bytes of length before each message) until the
// other side closes.
func answerFromHosts(conn net.Conn, path string) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply, err := replyFromHosts(query, path)
		if err != nil {
			return
		}
		if _, err := conn.Write(binary.BigEndian.AppendUint16(nil, uint16(len(reply)))); err != nil {
			return
		}
		if _, err := conn.Write(reply); err != nil {
			return
		}
	}
}

func replyFromHosts(query []byte, path string) ([]byte, error) {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil {
		return nil, err
	}
	q, err := p.Question()
	if err != nil {
		return nil, err
	}
	address, found := Lookup(path, strings.TrimSuffix(q.Name.String(), "."))
	msg := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: head.ID, Response: true, Authoritative: true, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	if !found {
		msg.Header.RCode = dnsmessage.RCodeNameError
		return msg.Pack()
	}
	rr := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}
	switch {
	case q.Type == dnsmessage.TypeA && address.Is4():
		msg.Answers = []dnsmessage.Resource{{Header: rr, Body: &dnsmessage.AResource{A: address.As4()}}}
	case q.Type == dnsmessage.TypeAAAA && address.Is6():
		msg.Answers = []dnsmessage.Resource{{Header: rr, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}}}
	}
	return msg.Pack()
}

// Lookup finds the first address of a name, hosts(5).
func Lookup(path, name string) (netip.Addr, bool) {
	a, ok := Read(path)[strings.ToLower(name)]
	return a, ok
}

// Read finds the first address of each name, in lower case, of a file, hosts(5); none where it cannot be read.
func Read(path string) map[string]netip.Addr {
	out := map[string]netip.Addr{}
	f, err := os.Open(path)
	if err != nil {
		return out
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil {
			continue
		}
		for _, n := range fields[1:] {
			if n = strings.ToLower(n); !out[n].IsValid() {
				out[n] = a.Unmap()
			}
		}
	}
	return out
}
