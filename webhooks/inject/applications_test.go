package inject

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
)

// Only what membership goes by has an Application be compiled anew.
func TestApplications_areCompiledWhenTheyChange(t *testing.T) {
	key := types.NamespacedName{Namespace: "blog", Name: "web"}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Application)
		anew   bool
	}{
		"status":   {func(a *v1alpha1.Application) { a.Status.ComponentsReady = "1/1" }, false},
		"metadata": {func(a *v1alpha1.Application) { a.Labels = map[string]string{"a": "b"} }, false},
		"spec":     {func(a *v1alpha1.Application) { a.Generation++ }, true},
		"deletion": {func(a *v1alpha1.Application) { a.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"another":  {func(a *v1alpha1.Application) { a.UID = "another" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			old := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid", Generation: 1}}
			old.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			now := old.DeepCopy()
			now.ResourceVersion = "2"
			tc.change(now)
			apps := &applications{changed: func() {}}
			apps.set(t.Context())(trimmed(t, old))
			before := apps.index.Get(key)
			require.NotNil(t, before)
			apps.update(t.Context())(trimmed(t, old), trimmed(t, now))
			assert.Equal(t, tc.anew, before != apps.index.Get(key))
		})
	}
}

func trimmed(t *testing.T, app *v1alpha1.Application) any {
	t.Helper()
	obj, err := Trim(app)
	require.NoError(t, err)
	return obj
}
