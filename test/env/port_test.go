package env_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

// An address is given once, whether or not a process has begun to listen on it.
func TestFreeAddress_isGivenOnce(t *testing.T) {
	given := map[string]bool{}
	for range 200 {
		address, err := env.FreeAddress()
		require.NoError(t, err)
		require.False(t, given[address], address)
		given[address] = true
	}
	address := env.Address(t)
	l, err := net.Listen("tcp4", address)
	require.NoError(t, err, "no process listens")
	assert.NoError(t, l.Close())
}
