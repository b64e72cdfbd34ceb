package resolver

import (
	"encoding/binary"
	"net"
	"time"
)

// ntpEra is when NTP's seconds begin, in Unix time.
const ntpEra = -2208988800

// ServeTime answers NTP (RFC 5905) with the machine's clock, until the socket is closed.
func ServeTime(socket net.PacketConn) {
	for query := make([]byte, 512); ; {
		n, client, err := socket.ReadFrom(query)
		if err != nil {
			return
		}
		if reply := ntpReply(query[:n], time.Now()); reply != nil {
			_, _ = socket.WriteTo(reply, client) // a datagram may get lost
		}
	}
}

// ntpReply is nil for what is no question.
func ntpReply(query []byte, now time.Time) []byte {
	const size, client = 48, 3
	if len(query) < size || query[0]&7 != client {
		return nil
	}
	reply := make([]byte, size)
	reply[0], reply[1], reply[2], reply[3] = 4<<3|4, 2, query[2], 0xec // version 4, a server of stratum 2, microseconds
	stamp := uint64(now.Unix()-ntpEra)<<32 | uint64(now.Nanosecond())<<32/uint64(time.Second)
	copy(reply[12:], []byte{169, 254, 169, 254})
	copy(reply[24:32], query[40:48]) // when the client has sent it
	for _, at := range []int{16, 32, 40} {
		binary.BigEndian.PutUint64(reply[at:], stamp)
	}
	return reply
}
