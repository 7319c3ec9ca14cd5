package application_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// applicationKind changes the CustomResourceDefinition of Application.
type applicationKind struct {
	*world
	client apiextensions.CustomResourceDefinitionInterface
}

func newApplicationKind(w *world) *applicationKind {
	w.T.Helper()
	c, err := apiextensions.NewForConfig(w.Cluster.RESTConfig())
	require.NoError(w.T, err)
	return &applicationKind{world: w, client: c.CustomResourceDefinitions()}
}

func (k *applicationKind) change(write func(context.Context, *apiextensionsv1.CustomResourceDefinition) error) {
	k.T.Helper()
	require.NoError(k.T, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		crd, err := k.client.Get(k.T.Context(), "applications."+v1alpha1.Group, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return write(k.T.Context(), crd)
	}))
}

// grow adds an optional field to a version, as a later release would.
func grow(version *apiextensionsv1.CustomResourceDefinitionVersion) {
	spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
	spec.Properties["support"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	version.Schema.OpenAPIV3Schema.Properties["spec"] = spec
}

// promote adds version v1beta1, with a field more, which is stored from then on.
func (k *applicationKind) promote() {
	k.T.Helper()
	k.change(func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
		alpha := &crd.Spec.Versions[0]
		grow(alpha)
		beta := *alpha.DeepCopy()
		beta.Name = "v1beta1"
		alpha.Storage, alpha.Deprecated, alpha.DeprecationWarning = false, true, ptr.To("use v1beta1")
		crd.Spec.Versions = append(crd.Spec.Versions, beta)
		_, err := k.client.Update(ctx, crd, metav1.UpdateOptions{})
		return err
	})
}

// retire ends the migration of what is stored, and serves the first version no more.
func (k *applicationKind) retire() {
	k.T.Helper()
	k.change(func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
		crd.Status.StoredVersions = []string{"v1beta1"}
		_, err := k.client.UpdateStatus(ctx, crd, metav1.UpdateOptions{})
		return err
	})
	k.change(func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
		crd.Spec.Versions = crd.Spec.Versions[1:]
		_, err := k.client.Update(ctx, crd, metav1.UpdateOptions{})
		return err
	})
}

// inBeta reads the Application as version v1beta1, as soon as that is served.
func (k *applicationKind) inBeta(name string) *unstructured.Unstructured {
	k.T.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(v1alpha1.Group + "/v1beta1")
	o.SetKind(v1alpha1.ApplicationKind)
	require.True(k.T, k.Eventually(func() bool {
		return k.Client.Get(k.T.Context(), types.NamespacedName{Namespace: k.Namespace, Name: name}, o) == nil
	}))
	return o
}

// A24, A99: a later release may add fields, and versions: what was written before stays valid,
// a controller of before keeps what it does not know, and when all is stored in the new version
// the old one can go.
func TestPromotion_breaksNoOldObject(t *testing.T) {
	c := env.Start(t, env.Options{Name: "promotion", CRDs: []string{crds}})
	process := hub.Start(t, c, setup)
	w := &world{hub.NewWorld(t, c)}
	kind := newApplicationKind(w)
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	settings := configMap(member("settings"))
	w.Create(settings)
	w.awaitOwned(settings, app, true)
	hub.AwaitReady(w.World, app)

	kind.promote()
	beta := kind.inBeta("shop")
	assert.Equal(t, app.UID, beta.GetUID())
	require.NoError(t, w.Client.Patch(t.Context(), beta, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"support":"always"}}`))))
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Ownership = v1alpha1.OwnershipObserve })
	w.awaitOwned(settings, app, false)
	hub.Await(w.World, app, "the finalizer is still there", func(app *v1alpha1.Application) bool { return len(app.Finalizers) == 0 })
	support, _, err := unstructured.NestedString(kind.inBeta("shop").Object, "spec", "support")
	require.NoError(t, err)
	assert.Equal(t, "always", support, "who does not know the field keeps it")

	process.Stop()
	kind.retire()
	beta = kind.inBeta("shop")
	assert.Equal(t, app.UID, beta.GetUID())
	ready, _, err := unstructured.NestedString(beta.Object, "status", "componentsReady")
	require.NoError(t, err)
	assert.Equal(t, "1/1", ready)
}
