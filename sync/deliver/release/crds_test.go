package release_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
)

// widgets is the chart with its CRD in a group of its own, and a field more or less in it.
func (w *world) widgets(field string) release.Desired {
	d := w.desired("widgets", nil)
	group := w.namespace + ".example.com"
	for _, f := range append(d.Chart.Files, d.Chart.Templates...) {
		text := strings.ReplaceAll(string(f.Data), "release.example.com", group)
		f.Data = []byte(strings.ReplaceAll(text, "size: {type: integer}", "size: {type: integer}, "+field+": {type: string}"))
	}
	d.ChartDigest = field
	return d
}

// K47: CRDs are there before the objects that need them, and before the templates that ask for them.
func TestEnsure_createsAndUpgradesCRDs(t *testing.T) {
	w := newWorld(t)
	client, err := apiextensions.NewForConfig(w.cluster.RESTConfig())
	require.NoError(t, err)
	name := "widgets." + w.namespace + ".example.com"
	fields := func() []string {
		crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.NotContains(t, crd.Labels, v1alpha1.OwnerHashLabel, "no release deletes it")
		assert.Equal(t, "hub/ApplicationInstallation/default/widgets", crd.Annotations[v1alpha1.OwnerAnnotation])
		var names []string
		for field := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
			names = append(names, field)
		}
		return names
	}

	d := w.widgets("one")
	d.Options.CRDs = v1alpha1.CRDSkip
	_, err = w.try(t.Context(), d)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "no Widget")
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err))

	d = w.widgets("one")
	disabled := "gadgets." + w.namespace + ".example.com"
	d.Chart.Metadata.Dependencies = append(d.Chart.Metadata.Dependencies, &chart.Dependency{Name: "gadgets", Version: "1.0.0", Condition: "gadgets.enabled"})
	d.Chart.AddDependency(&chart.Chart{
		Metadata: &chart.Metadata{APIVersion: "v2", Name: "gadgets", Version: "1.0.0"},
		Files: []*chart.File{{Name: "crds/gadgets.yaml", Data: []byte(strings.ReplaceAll(
			strings.ReplaceAll(string(d.Chart.CRDObjects()[0].File.Data), "widget", "gadget"), "Widget", "Gadget"))}},
	})
	d.Values = map[string]any{"gadgets": map[string]any{"enabled": false}}
	w.ensure(d)
	assert.ElementsMatch(t, []string{"size", "one"}, fields())
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), disabled, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "its subchart is disabled: %v", err)
	w.ensure(w.widgets("two"))
	assert.ElementsMatch(t, []string{"size", "one"}, fields(), "the default does not upgrade")
	d = w.widgets("one: {type: string}, two")
	d.Options.CRDs = v1alpha1.CRDCreateReplace
	w.ensure(d)
	assert.ElementsMatch(t, []string{"size", "one", "two"}, fields())

	_, err = w.engine.Uninstall(t.Context(), w.target, w.identity(d.Name), release.Options{}, nil)
	require.NoError(t, err)
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err, "a CRD outlives the releases that use it")
}

// late is a mapper that does not find Widgets at first, as after a CRD was established.
type late struct {
	meta.ResettableRESTMapper
	misses int
}

func (l *late) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if gk.Kind == "Widget" && l.misses > 0 {
		l.misses--
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return l.ResettableRESTMapper.RESTMapping(gk, versions...)
}

// K47: an API server lists a new kind a moment after its CRD is established.
func TestEnsure_waitsUntilNewKindsAreServed(t *testing.T) {
	w := newWorld(t)
	mapper := &late{ResettableRESTMapper: w.target.mapper.(meta.ResettableRESTMapper), misses: 3}
	w.target.mapper = mapper
	w.ensure(w.widgets("one"))
	assert.Zero(t, mapper.misses)
}
