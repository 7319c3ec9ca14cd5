package applicationinstallation

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/source/subscription"
)

// A fetch that ends after its cluster was removed does not keep its chart for ever.
func TestWake_forgetsWhatNobodyWants(t *testing.T) {
	r, woken := &Reconciler{}, make(chan struct{})
	r.fetches = subscription.NewPool[jobKey, prepared](t.Context(), subscription.Options[jobKey]{Width: 1, Wake: func(k jobKey) { r.wake(k); woken <- struct{}{} }})
	source := r.fetches.New(jobKey{cluster: types.NamespacedName{Name: "removed"}})
	fetch := func() bool {
		_, got := source.Set(subscription.Question[prepared]{ID: "chart", Ask: func(context.Context) (prepared, error) { return prepared{digest: "chart"}, nil }})
		return got != nil
	}
	require.False(t, fetch())
	<-woken
	require.False(t, fetch(), "the result was dropped, so it is fetched again")
	<-woken
}
