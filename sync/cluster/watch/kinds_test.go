package watch_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/cluster/watch"
)

// hanging is the mapper of an API server that does not answer.
type hanging struct {
	meta.RESTMapper
	until <-chan struct{}
}

func (h hanging) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	<-h.until
	return nil, errors.New("too late")
}

// An API server that hangs holds up no caller for longer than a question may take.
func TestMapping_endsWithItsContext(t *testing.T) {
	tooSlow := errors.New("it does not answer in time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(tooSlow)
	_, err := watch.Mapping(ctx, hanging{until: t.Context().Done()}, schema.GroupKind{Group: "example.com", Kind: "Widget"})
	require.ErrorIs(t, err, tooSlow)
}

// C57
func TestIsBuiltIn(t *testing.T) {
	for _, group := range []string{"", "apps", "rbac.authorization.k8s.io", "apiextensions.k8s.io"} {
		assert.True(t, watch.IsBuiltIn(group), group)
	}
	for _, group := range []string{"example.com", "apps.waybill.dev", "gateway.networking.k8s.io", "metrics.k8s.io"} {
		assert.False(t, watch.IsBuiltIn(group), group)
	}
}
