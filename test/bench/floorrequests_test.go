package bench

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// Many limits are a multiple of a floor: it must write what it is said to write.
func TestFloor_writesWhatRowsCompareWith(t *testing.T) {
	h := startCluster(t, env.Options{Name: "floor", NoControllers: true, CRDs: []string{ourCRDs, benchCRDs}})
	h.namespace(t, sizedNamespace)
	bare := newFloor(t, h.RESTConfig(), 2)
	get := func(gvr schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
		return h.client.Resource(gvr).Namespace(sizedNamespace).Get(t.Context(), name, metav1.GetOptions{})
	}
	merge := func(path, body string) {
		bare.each(t, []patch{{path, []byte(body)}}, bare.merging)
	}

	text := strings.Repeat("x", largeSize)
	objects := prepare(t, sizedManifests(0, text))
	bare.apply(t, objects)
	report, err := get(reports, sizedName(0, 1))
	require.NoError(t, err)
	stored, _, err := unstructured.NestedString(report.Object, "spec", "text")
	require.NoError(t, err)
	assert.Len(t, stored, largeSize)
	require.NoError(t, h.setCondition(t.Context(), sizedNamespace, sizedName(0, 1), "False"))

	h.create(t, applications, application(sizedNamespace, applicationName(0), "ConfigMap", "Report.bench.waybill.dev"))
	merge(pathOf(applications, sizedNamespace, applicationName(0))+"/status", string(readyStatus(componentCount, componentCount)))
	app, err := get(applications, applicationName(0))
	require.NoError(t, err)
	assert.True(t, componentsReady(componentCount, componentCount)(app))

	bare.each(t, metadataPatches(t, objects, func(int) map[string]any { return ownedMetadata(app.GetName(), app.GetUID()) }), bare.merging)
	config, err := get(configMaps, sizedName(0, 2))
	require.NoError(t, err)
	assert.Equal(t, app.GetUID(), config.GetOwnerReferences()[0].UID)
	assert.Equal(t, app.GetName(), config.GetAnnotations()[v1alpha1.ApplicationAnnotation])
	bare.each(t, metadataPatches(t, objects, func(int) map[string]any { return unownedMetadata }), bare.merging)
	config, err = get(configMaps, sizedName(0, 2))
	require.NoError(t, err)
	assert.Empty(t, config.GetOwnerReferences())
	assert.Empty(t, config.GetAnnotations())
	assert.Equal(t, map[string]string{"app": app.GetName()}, config.GetLabels())

	bare.remove(t, objects)
	_, err = get(configMaps, sizedName(0, 2))
	assert.True(t, apierrors.IsNotFound(err))
	err = send(bare.clients[0], func(p patch) (*http.Request, error) { return http.NewRequest(http.MethodGet, bare.host+p.path, nil) }, objects[0])
	assert.ErrorContains(t, err, "404", "what the API server refuses is no floor")
}
