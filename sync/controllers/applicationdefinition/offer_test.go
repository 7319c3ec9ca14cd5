package applicationdefinition

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
)

// C45: source and values of a version stay on the hub, the values of the definition do not.
func TestOffer_dropsTemplatesAlone(t *testing.T) {
	definition := &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: v1alpha1.ApplicationDefinitionSpec{
			DefaultValues: &apiextensionsv1.JSON{Raw: []byte(`{"replicas":2,"ratio":0.5,"big":9007199254740993}`)},
			Versions: []v1alpha1.ApplicationVersion{{
				Version: "1.0.0", Deprecated: true,
				Template: &v1alpha1.ApplicationTemplate{
					Values: &apiextensionsv1.JSON{Raw: []byte(`{"internal":"host"}`)},
					Source: v1alpha1.ApplicationSource{Git: &v1alpha1.GitSource{Remote: "git@internal:charts"}},
				},
			}},
		},
	}
	before := definition.DeepCopy()
	o, err := newOffer(definition, hub)
	require.NoError(t, err)
	assert.Equal(t, before, definition, "the cache's object is not changed")
	body := string(o.toUsers.body)
	assert.NotContains(t, body, "internal")
	assert.Contains(t, body, `"defaultValues":{"replicas":2,"ratio":0.5,"big":9007199254740993}`)
	assert.Contains(t, body, `"deprecated":true`)
}

// K28, C47: a seed installs from its copy, whatever clusterSelector says of its labels.
func TestOffer_ofASeed(t *testing.T) {
	definition := &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{
			"note": "kept", v1alpha1.ForceRemoveAnnotation: "1.0.0", v1alpha1.OwnerAnnotation: "a GitSync",
		}},
		Spec: v1alpha1.ApplicationDefinitionSpec{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			Versions: []v1alpha1.ApplicationVersion{{
				Version:  "1.0.0",
				Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Git: &v1alpha1.GitSource{Remote: "git@internal:charts"}}},
			}},
		},
	}
	o, err := newOffer(definition, hub)
	require.NoError(t, err)
	user := &v1alpha1.KubernetesCluster{}
	assert.Nil(t, o.to(user))
	seed := &v1alpha1.KubernetesCluster{Spec: v1alpha1.KubernetesClusterSpec{Role: v1alpha1.ClusterRoleSeed}}
	offered := o.to(seed)
	require.NotNil(t, offered)
	copied := &v1alpha1.ApplicationDefinition{}
	require.NoError(t, json.Unmarshal(offered.body, copied))
	assert.Equal(t, definition.Spec, copied.Spec)
	assert.Equal(t, map[string]string{"note": "kept", v1alpha1.ForceRemoveAnnotation: "1.0.0", v1alpha1.CopyOfAnnotation: hub}, copied.Annotations)
	assert.True(t, copied.IsCopy())
	assert.True(t, copied.InCatalog())
	assert.Nil(t, offered.statusBody, "the seed's own controller writes it")
	listed := &v1alpha1.ApplicationDefinition{}
	require.NoError(t, json.Unmarshal(o.toUsers.body, listed))
	assert.False(t, listed.InCatalog(), "a copy in a user cluster only says what there is")
}

// The hash of what was offered is that of what the API server gives back for it.
func TestOffer_hashOfTheSpecIsThatOfTheLiveOne(t *testing.T) {
	o := testOffer(t)
	live := &unstructured.Unstructured{}
	require.NoError(t, live.UnmarshalJSON(o.body))
	got, err := hashJSON(live.Object["spec"])
	require.NoError(t, err)
	assert.Equal(t, o.specHash, got)
}

func TestOffers_areMadeOnceAndHandedOnce(t *testing.T) {
	var s offers
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u", ResourceVersion: "1"}}
	first, err := s.of(definition, hub)
	require.NoError(t, err)
	assert.True(t, s.hand("web", first))
	assert.False(t, s.hand("web", first))
	again, err := s.of(definition, hub)
	require.NoError(t, err)
	assert.Same(t, first, again)

	status := definition.DeepCopy()
	status.ResourceVersion = "2"
	again, err = s.of(status, hub)
	require.NoError(t, err)
	assert.False(t, s.hand("web", again), "a write of its status changes nothing")

	narrowed := status.DeepCopy()
	narrowed.ResourceVersion = "3"
	narrowed.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	again, err = s.of(narrowed, hub)
	require.NoError(t, err)
	assert.True(t, s.hand("web", again))
	assert.True(t, s.forget("web"))
	assert.False(t, s.forget("web"))

	narrowed.ResourceVersion = "4"
	narrowed.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Sometimes"}}
	_, err = s.of(narrowed, hub)
	assert.ErrorContains(t, err, "spec.clusterSelector: ")
}

func TestReused(t *testing.T) {
	use := func(name, definition, version string, ready metav1.ConditionStatus) v1alpha1.InstallationSummary {
		return v1alpha1.InstallationSummary{Namespace: "apps", Name: name, Definition: definition, Version: version, Ready: ready}
	}
	before := []v1alpha1.InstallationSummary{use("a", "web", "1", "True"), use("b", "db", "1", "True"), use("c", "cache", "1", "True")}
	after := []v1alpha1.InstallationSummary{use("a", "web", "2", "True"), use("b", "db", "1", "False"), use("d", "queue", "1", "True")}
	got := reused(&v1alpha1.KubernetesClusterStatus{Installations: before}, &v1alpha1.KubernetesClusterStatus{Installations: after})
	slices.Sort(got)
	assert.Equal(t, []string{"cache", "queue", "web"}, got, "that db is not ready is no change of its use")
}

func TestForced(t *testing.T) {
	used := []v1alpha1.VersionUsage{{Version: "1.0.0"}, {Version: "2.0.0"}}
	for annotation, want := range map[string]bool{"": false, "*": true, "1.0.0": false, "1.0.0, 2.0.0": true, "3.0.0,*": true} {
		d := &v1alpha1.ApplicationDefinition{Status: v1alpha1.ApplicationDefinitionStatus{UsedBy: used}}
		d.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: annotation}
		assert.Equal(t, want, forced(d), annotation)
	}
}

func TestUsers_namesSomeAndCountsAll(t *testing.T) {
	many := v1alpha1.VersionUsage{Version: "1", Count: 30}
	for range maxUsers {
		many.Installations = append(many.Installations, "x")
	}
	names, count := users([]v1alpha1.VersionUsage{many, {Version: "2", Count: 1, Installations: []string{"y"}}})
	assert.Equal(t, 31, count)
	assert.Equal(t, "x, x, x, x, x and 26 more", names)
}

func FuzzHashJSON(f *testing.F) {
	f.Add(`{"b":1,"a":[1.5,"x",null]}`)
	f.Fuzz(func(t *testing.T, in string) {
		var value any
		if json.Unmarshal([]byte(in), &value) != nil {
			return
		}
		first, err := hashJSON(value)
		require.NoError(t, err)
		second, err := hashJSON(json.RawMessage(in))
		require.NoError(t, err)
		assert.Equal(t, first, second)
	})
}
