package applicationinstallation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"waybill.dev/waybill/sync/cluster/content"
)

// withInformers is a cluster of which informers are all there is.
type withInformers struct{ informers cache.Cache }

func (w withInformers) Cache() cache.Cache { return w.informers }

// A worker is not held up where Secrets may be read and not watched: it would be for ever.
func TestMetadataWatch_doesNotWait(t *testing.T) {
	scheme := runtime.NewScheme()
	kind := content.Metadata(content.Secret).GroupVersionKind()
	scheme.AddKnownTypeWithName(kind, &metav1.PartialObjectMetadata{})
	informers := &informertest.FakeInformers{
		Scheme:         scheme,
		InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{kind: controllertest.NewFakeInformer()},
	}
	w := &metadataWatch{ctx: t.Context(), cluster: withInformers{informers}, kind: kind, changed: func(client.Object) {}}
	for range 2 {
		known, err := w.watch()
		require.NoError(t, err)
		assert.False(t, known)
	}
}
