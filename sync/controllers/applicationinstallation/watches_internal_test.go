package applicationinstallation

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
)

// A worker is not held up where Secrets may be read and not watched: it would be for ever.
func TestContentWatches_doNotWait(t *testing.T) {
	scheme := runtime.NewScheme()
	kind := content.Metadata(content.Secret).GroupVersionKind()
	scheme.AddKnownTypeWithName(kind, &metav1.PartialObjectMetadata{})
	changed := func(context.Context, content.Kind, types.NamespacedName) {}
	informers := &informertest.FakeInformers{
		Scheme:         scheme,
		InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{kind: controllertest.NewFakeInformer()},
	}
	watches := newContentWatches(t.Context(), informers, changed)
	for range 2 {
		known, err := watches.start(content.Secret)
		require.NoError(t, err)
		assert.False(t, known)
	}
}

func TestDiffers_takesNoNoticeOfAStatus(t *testing.T) {
	was := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Generation: 1, ResourceVersion: "1"}}
	cases := map[string]struct {
		change func(*v1alpha1.ApplicationDefinition)
		want   bool
	}{
		"status": {func(d *v1alpha1.ApplicationDefinition) { d.Status.Clusters = 2 }, false},
		"spec":   {func(d *v1alpha1.ApplicationDefinition) { d.Generation = 2 }, true},
		"force": {func(d *v1alpha1.ApplicationDefinition) {
			d.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "*"}
		}, true},
		"deletion": {func(d *v1alpha1.ApplicationDefinition) { d.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := was.DeepCopy()
			is.ResourceVersion = "2"
			tc.change(is)
			assert.Equal(t, tc.want, differs(was, is))
		})
	}
}
