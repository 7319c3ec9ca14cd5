package application

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// A58: no worker starts before all Applications are known, or the process ends.
func TestPrerequisite_holdsWorkersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		met, ended := make(chan struct{}), make(chan error, 1)
		var held source.TypedSyncingSource[ctrl.Request] = &prerequisite{met: met}
		require.NoError(t, held.Start(t.Context(), nil))
		go func() { ended <- held.WaitForSync(t.Context()) }()
		synctest.Wait()
		assert.Empty(t, ended)
		close(met)
		synctest.Wait()
		require.NoError(t, <-ended)

		stopped, stop := context.WithCancel(t.Context())
		stop()
		require.ErrorIs(t, (&prerequisite{met: make(chan struct{})}).WaitForSync(stopped), context.Canceled)
	})
}
