package address

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKindOf(t *testing.T) {
	cases := map[string]kind{
		"127.0.0.1":              loopback,
		"127.8.8.8":              loopback,
		"::1":                    loopback,
		"::ffff:127.0.0.1":       loopback,
		"::127.0.0.1":            loopback,
		"64:ff9b::7f00:1":        loopback,
		"64:ff9b:1::7f00:1":      loopback,
		"2002:7f00:1::1":         loopback,
		"0.0.0.0":                unspecified,
		"0.1.2.3":                unspecified,
		"::":                     unspecified,
		"::ffff:0.0.0.0":         unspecified,
		"169.254.1.1":            linkLocal,
		"::ffff:169.254.1.1":     linkLocal,
		"fe80::1":                linkLocal,
		"fe80::1%eth0":           linkLocal,
		"224.0.0.1":              multicast,
		"ff02::1":                multicast,
		"255.255.255.255":        multicast,
		"169.254.169.254":        metadata,
		"::ffff:169.254.169.254": metadata,
		"64:ff9b::a9fe:a9fe":     metadata,
		"100.100.100.200":        metadata,
		"168.63.129.16":          metadata,
		"192.0.0.192":            metadata,
		"fd00:ec2::254":          metadata,
		"fd20:ce::254":           metadata,
		"10.0.0.1":               allowed,
		"172.16.0.1":             allowed,
		"192.168.1.1":            allowed,
		"100.64.0.1":             allowed,
		"fd12::1":                allowed,
		"140.82.121.4":           allowed,
		"2606:50c0:8000::153":    allowed,
		"64:ff9b::8c52:7904":     allowed,
	}
	for address, want := range cases {
		assert.Equal(t, want, kindOf(netip.MustParseAddr(address)), address)
	}
}
