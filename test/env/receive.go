package env

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Receive returns the next value of a channel. If none comes within Limit, it fails the test with a
// message that says what is missing.
func Receive[T any](t testing.TB, from <-chan T, missing string) T {
	t.Helper()
	timer := time.NewTimer(Limit)
	defer timer.Stop()
	select {
	case value := <-from:
		return value
	case <-timer.C:
		require.Fail(t, missing)
	}
	var none T
	return none
}
