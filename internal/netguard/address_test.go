package netguard

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestAddresses(t *testing.T) {
	a := newAddresses(nil)
	for _, public := range []string{
		"8.8.8.8", "1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "168.63.129.17",
		"2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "::ffff:8.8.8.8",
	} {
		if !a.allow(netip.MustParseAddr(public)) {
			t.Errorf("%s is refused", public)
		}
	}
	for _, private := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
		"168.63.129.16", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1",
		"192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1",
		"239.255.255.250", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b::8.8.8.8",
		"64:ff9b:1::7f00:1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:db8::1",
		"2002:7f00:1::1", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%lo", "fec0::1",
		"ff02::1", "2a00::5efe:7f00:1", "2a00::200:5efe:10.0.0.1", "4000::1",
	} {
		if a.allow(netip.MustParseAddr(private)) {
			t.Errorf("%s is allowed", private)
		}
	}
	if a.allow(netip.Addr{}) {
		t.Error("no address is allowed")
	}
}

// A rule for a range opens that range, in each form, and no other.
func TestAllowedRange(t *testing.T) {
	a := newAddresses(prefixes("10.1.0.0/16", "64:ff9b::/96"))
	for addr, want := range map[string]bool{
		"10.1.2.3":              true,
		"::ffff:10.1.2.3":       true,
		"10.2.0.1":              false,
		"64:ff9b::8.8.8.8":      true,
		"64:ff9b::10.1.2.3":     true,
		"64:ff9b::10.2.0.1":     false, // the gateway is allowed, what is behind it is not
		"64:ff9b::a9fe:a9fe":    false,
		"2002:0a01:0203::1":     false, // the inner address is allowed, the tunnel is not
		"::ffff:0:169.254.1.1":  false,
		"2001:4860:4860::8888":  true,
		"fd00::1":               false,
		"::ffff:169.254.169.25": false,
	} {
		if got := a.allow(netip.MustParseAddr(addr)); got != want {
			t.Errorf("allow(%s) = %v", addr, got)
		}
	}
}

// Whatever wraps a private IPv4 address is refused.
func TestEmbeddedPrivateAddresses(t *testing.T) {
	a := newAddresses(prefixes("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "2a00::/16"))
	rapid.Check(t, func(t *rapid.T) {
		refused := a.refused4[rapid.IntRange(0, len(a.refused4)-1).Draw(t, "range")]
		host := rapid.Uint32().Draw(t, "host")
		base := binary.BigEndian.Uint32(refused.Addr().AsSlice())
		v4 := base | host&(1<<(32-refused.Bits())-1)
		var inner [4]byte
		binary.BigEndian.PutUint32(inner[:], v4)
		var inverted [4]byte
		binary.BigEndian.PutUint32(inverted[:], ^v4)
		for at, prefix := range map[string][]byte{
			"mapped":  {10: 0xff, 11: 0xff},
			"nat64":   {0: 0, 1: 0x64, 2: 0xff, 3: 0x9b, 11: 0},
			"nat64-1": {1: 0x64, 2: 0xff, 3: 0x9b, 5: 1, 11: 0},
			"isatap":  {0: 0x2a, 8: 2, 10: 0x5e, 11: 0xfe},
			"compat":  {11: 0},
			"6to4":    append([]byte{0x20, 0x02}, inner[:]...),
			"teredo":  {0: 0x20, 1: 0x01, 11: 0},
		} {
			var b [16]byte
			copy(b[:], prefix)
			switch at {
			case "6to4":
			case "teredo":
				copy(b[12:], inverted[:])
			default:
				copy(b[12:], inner[:])
			}
			if addr := netip.AddrFrom16(b); a.allow(addr) {
				t.Fatalf("%s: %s of %s is allowed", at, addr, netip.AddrFrom4(inner))
			}
		}
	})
}
