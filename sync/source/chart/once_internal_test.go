package chart

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/singleflight"
)

// No caller can recover the panic of a shared flight, which would end the process of all clusters.
func TestOnce_panicIsAnError(t *testing.T) {
	var flight singleflight.Group
	_, err := once(t.Context(), &flight, "key", func(context.Context) (int, error) { panic("absurd archive") })
	require.ErrorIs(t, err, ErrInvalidChart)
	assert.Contains(t, err.Error(), "absurd archive")
	got, err := once(t.Context(), &flight, "key", func(context.Context) (int, error) { return 1, nil })
	require.NoError(t, err)
	assert.Equal(t, 1, got)
}
