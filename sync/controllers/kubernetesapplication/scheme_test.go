package kubernetesapplication_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"waybill.dev/waybill/test/hub"
)

func schemeWithDefinitions(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := hub.NewScheme(t)
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	return scheme
}

func toUnstructured(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}
}

func quantity(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }
