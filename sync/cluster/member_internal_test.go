package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// An error ends up in conditions: it says something at any moment.
func TestMember_isToldOfBetweenTwoEngagements(t *testing.T) {
	m := newMember(NewRegistry(nil, Options{}), types.NamespacedName{Namespace: "team-a", Name: "one"}, "a")
	m.state.Err = nil
	_, err := m.get()
	require.ErrorIs(t, err, ErrNotEngaged)
	assert.EqualError(t, err, "cluster team-a/one is not connected: it is about to be connected again")
}
