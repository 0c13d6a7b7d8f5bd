package netguard

import (
	"encoding/binary"
	"net/netip"
)

// notPublic lists the IPv4 ranges of IANA's special-purpose registry (RFC 6890 and its
// updates), the multicast and reserved ones, and single addresses in public ranges at
// which clouds serve the metadata and agents of a virtual machine.
func notPublic() []netip.Prefix {
	return prefixes(
		"0.0.0.0/8",        // this network; Linux connects 0.0.0.0 to itself
		"10.0.0.0/8",       // private
		"100.64.0.0/10",    // shared by a carrier (CGNAT); Alibaba's metadata
		"127.0.0.0/8",      // loopback
		"168.63.129.16/32", // Azure's host agent: public by number only
		"169.254.0.0/16",   // link-local; metadata of most clouds
		"172.16.0.0/12",    // private
		"192.0.0.0/24",     // protocol assignments; Oracle's metadata
		"192.0.2.0/24",     // documentation
		"192.88.99.0/24",   // 6to4 relays
		"192.168.0.0/16",   // private
		"198.18.0.0/15",    // benchmarks
		"198.51.100.0/24",  // documentation
		"203.0.113.0/24",   // documentation
		"224.0.0.0/4",      // multicast
		"240.0.0.0/4",      // reserved, and broadcast
	)
}

// notPublic6 lists the IPv6 ranges within 2000::/3 that are not public. Outside of
// 2000::/3 nothing is: loopback, unspecified, unique local (AWS's metadata), link-local,
// site-local, multicast, discard, NAT64 and the IPv4-compatible range.
func notPublic6() []netip.Prefix {
	return prefixes(
		"2001::/23",     // protocol assignments: Teredo, benchmarks, ORCHID
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4
		"3fff::/20",     // documentation
	)
}

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// addresses decides which addresses may be connected to.
type addresses struct {
	allowed            []netip.Prefix // the operator's
	refused4, refused6 []netip.Prefix
	public6            netip.Prefix
}

func newAddresses(allowed []netip.Prefix) addresses {
	return addresses{
		allowed:  allowed,
		refused4: notPublic(),
		refused6: notPublic6(),
		public6:  netip.MustParsePrefix("2000::/3"),
	}
}

// allow reports whether a connection to addr may be made. An IPv6 address that carries
// an IPv4 one leads to that one in the end, so both must be allowed: a rule for the NAT64
// range of the network opens the public hosts behind it, not the private ones.
func (a addresses) allow(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	// ::ffff:127.0.0.1 is 127.0.0.1 to the kernel.
	addr = addr.Unmap()
	if addr.Is4() {
		return contains(a.allowed, addr) || !contains(a.refused4, addr)
	}
	if inner, ok := embedded(addr); ok {
		return contains(a.allowed, addr) && a.allow(inner)
	}
	return contains(a.allowed, addr) || a.public6.Contains(addr) && !contains(a.refused6, addr)
}

func contains(list []netip.Prefix, addr netip.Addr) bool {
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// embedded returns the IPv4 address that a gateway or tunnel makes of addr: NAT64
// (RFC 6052, RFC 8215), 6to4 (RFC 3056), Teredo (RFC 4380), ISATAP (RFC 5214) and the
// IPv4-compatible form (RFC 4291). NAT64 with a prefix of a network's own cannot be told
// from other addresses; such a network has to keep its private hosts from it.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	b := addr.As16()
	v4 := func(at int) (netip.Addr, bool) { return netip.AddrFrom4([4]byte(b[at : at+4])), true }
	high, low := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	switch {
	case high == 0x0064_ff9b_0000_0000 && low>>32 == 0: // 64:ff9b::/96
		return v4(12)
	case high>>16 == 0x0064_ff9b_0001: // 64:ff9b:1::/48, whose form is the network's choice: read as /96
		return v4(12)
	case high>>48 == 0x2002:
		return v4(2)
	case high>>32 == 0x2001_0000: // the client's address, inverted
		inverted := binary.BigEndian.Uint32(b[12:])
		var client [4]byte
		binary.BigEndian.PutUint32(client[:], ^inverted)
		return netip.AddrFrom4(client), true
	case uint32(low>>32)&^0x0300_0000 == 0x0000_5efe: // ISATAP: 0000:5efe or 0200:5efe
		return v4(12)
	case high == 0 && low>>32 == 0 && low > 1: // ::a.b.c.d, but not :: and ::1
		return v4(12)
	}
	return netip.Addr{}, false
}
