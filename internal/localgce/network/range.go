package network

import "net/netip"

// Nth is the address so many behind another.
func Nth(a netip.Addr, n int) netip.Addr {
	b := a.As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// LastOf is the last address of a range.
func LastOf(p netip.Prefix) netip.Addr { return Nth(p.Addr(), 1<<(32-p.Bits())-1) }
