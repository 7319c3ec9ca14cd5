package address

import (
	"net/netip"
	"slices"
)

// kind is what kind of address an address is, in words for an error.
type kind string

const (
	allowed     kind = ""
	loopback    kind = "a loopback address"
	linkLocal   kind = "a link-local address"
	unspecified kind = "an unspecified address"
	multicast   kind = "a multicast address"
	metadata    kind = "an address of the cloud provider's metadata service"
)

// special are the ranges that sources may not be in, beside those that package netip knows.
var special = []struct {
	prefix netip.Prefix
	kind   kind
}{
	{netip.MustParsePrefix("169.254.169.254/32"), metadata},
	{netip.MustParsePrefix("100.100.100.200/32"), metadata}, // Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), metadata},   // Azure
	{netip.MustParsePrefix("192.0.0.192/32"), metadata},     // Oracle Cloud
	{netip.MustParsePrefix("fd00:ec2::/32"), metadata},      // AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), metadata},   // Google Cloud
	{netip.MustParsePrefix("0.0.0.0/8"), unspecified},
	{netip.MustParsePrefix("255.255.255.255/32"), multicast},
}

// embedded are the ranges whose addresses lead to an IPv4 address in them, and at which byte that is.
var embedded = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64 of one's own
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4
	{netip.MustParsePrefix("::/96"), 12},          // IPv4-compatible
}

// kindOf returns what keeps a source from being at an address; allowed if nothing does.
func kindOf(a netip.Addr) kind {
	a = a.Unmap().WithZone("")
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.kind
		}
	}
	switch {
	case a.IsLoopback():
		return loopback
	case a.IsUnspecified():
		return unspecified
	case a.IsLinkLocalUnicast():
		return linkLocal
	case a.IsMulticast():
		return multicast
	}
	for _, e := range embedded {
		if e.prefix.Contains(a) {
			inner, _ := netip.AddrFromSlice(slices.Clone(a.AsSlice()[e.at : e.at+4]))
			return kindOf(inner)
		}
	}
	return allowed
}
