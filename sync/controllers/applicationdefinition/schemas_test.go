package applicationdefinition_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/values/schema"
)

// system makes the system namespace, where there is none.
func system(t *testing.T, c client.Client) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultSystemNamespace}}
	require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), ns)))
}

// K31, K48: a copy says what values are checked against, and the schema goes with it; also where it is
// learned after the copy was made, and where there is no system namespace it is not waited for.
func TestCopies_haveTheSchemasOfValues(t *testing.T) {
	s := newSuite(t)
	system(t, s)
	user, without := s.user("user"), s.user("other")
	system(t, user)
	s.engage("eu-1", shared(t, "user").RESTConfig(), nil)
	s.engage("eu-2", shared(t, "other").RESTConfig(), nil)
	d := s.define("web")
	until(t, s, "web", isReady)

	kept := schema.ConfigMap(v1alpha1.DefaultSystemNamespace, d, map[string][]byte{"sha256-a": []byte("packed"), "sha256-b": []byte("of nothing")})
	require.NoError(t, s.Create(t.Context(), kept))
	t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(t.Context()), kept) })
	known := []v1alpha1.ValuesSchema{{Version: "1.0.0", Source: "s", Digest: "sha256-a"}}
	learned := get(t, s, "web")
	before := learned.DeepCopy()
	learned.Status.ValuesSchemas = known
	require.NoError(t, s.Status().Patch(t.Context(), learned, client.MergeFrom(before)))

	has := func(d *v1alpha1.ApplicationDefinition) bool { return d != nil && len(d.Status.ValuesSchemas) == 1 }
	copied := until(t, user, "web", has)
	assert.Equal(t, known, copied.Status.ValuesSchemas)
	found := &corev1.ConfigMap{}
	require.NoError(t, user.Get(t.Context(), client.ObjectKeyFromObject(kept), found), "it is there before the copy names it")
	assert.Equal(t, map[string][]byte{"sha256-a": []byte("packed")}, found.BinaryData)
	assert.Equal(t, copied.UID, found.OwnerReferences[0].UID, "it goes with the copy")
	until(t, without, "web", has)
	until(t, s, "web", isReady)
}
