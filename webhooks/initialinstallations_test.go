package webhooks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// initialList asks for one installation of each definition.
func initialList(definitions ...string) string {
	var entries []map[string]any
	for i, definition := range definitions {
		entries = append(entries, map[string]any{
			"metadata": map[string]any{"namespace": "apps", "name": fmt.Sprintf("app-%d", i)},
			"spec":     map[string]any{"applicationRef": map[string]any{"name": definition, "version": "v1.0.0"}},
		})
	}
	text, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func asking(ns, text string) *v1alpha1.KubernetesCluster {
	k := newCluster(ns, "")
	k.Annotations = map[string]string{v1alpha1.InitialInstallationsAnnotation: text}
	return k
}

// K61, C46: what a KubernetesCluster asks for is checked when it is asked for, whatever comes later.
func TestCluster_initialInstallationsAreChecked(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	def := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	})
	prod := func(k *v1alpha1.KubernetesCluster) *v1alpha1.KubernetesCluster {
		k.Labels = map[string]string{"env": "prod"}
		return k
	}
	twice := strings.ReplaceAll(initialList(def.Name, def.Name), "app-1", "app-0")
	for name, tc := range map[string]struct {
		cluster *v1alpha1.KubernetesCluster
		says    string
	}{
		"no list":          {prod(asking("", "a: 1")), "must be a list"},
		"an unknown field": {prod(asking("", `[{"metadata": {"name": "a", "namespace": "b"}, "specs": {}}]`)), `unknown field "specs"`},
		"no namespace":     {prod(asking("", strings.ReplaceAll(initialList(def.Name), "apps", ""))), "[0].metadata.namespace"},
		"an invalid spec":  {prod(asking("", strings.ReplaceAll(initialList(def.Name), "v1.0.0\"}", `v1.0.0"}, "valuesBlock": "[]"`))), "[0].spec.valuesBlock"},
		"one name twice":   {prod(asking("", twice)), "[1].metadata.name"},
		"no definition":    {prod(asking("", initialList(def.Name, "nobody-has-it"))), `there is no ApplicationDefinition "nobody-has-it"`},
		"no version":       {prod(asking("", strings.ReplaceAll(initialList(def.Name), "v1.0.0", "v9"))), `has no version "v9"`},
		"not offered":      {asking("", initialList(def.Name)), "is not offered to the cluster"},
		"a seed": {func() *v1alpha1.KubernetesCluster {
			k := prod(asking("", initialList(def.Name)))
			k.Spec.Role = v1alpha1.ClusterRoleSeed
			return k
		}(), "role Seed"},
		"no ConfigMap": {func() *v1alpha1.KubernetesCluster {
			k := newCluster("", "")
			k.Spec.InstallationsFrom = &v1alpha1.InstallationsReference{Name: "none"}
			return k
		}(), "there is no such ConfigMap"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cluster.Namespace = c.Namespace(t)
			err := admin.Create(t.Context(), tc.cluster.DeepCopy())
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			assert.ErrorContains(t, err, tc.says)
		})
	}
	warned.take()
	late := prod(asking(c.Namespace(t), initialList("yet-to-be-delivered")))
	require.NoError(t, admin.Create(t.Context(), late, client.FieldOwner(v1alpha1.FieldManager)), "a GitSync may deliver it before the definition")
	assert.Contains(t, strings.Join(warned.take(), " "), "the installations wait")
	require.NoError(t, admin.Create(t.Context(), prod(asking(c.Namespace(t), "- metadata: {name: a, namespace: b}\n  spec: {applicationRef: {name: "+def.Name+", version: v1.0.0}}"))), "YAML")
}

// K64, C35: who takes entries away, or edits something else, is asked about nothing; who adds one is asked about that.
func TestCluster_onlyWhatIsAddedIsAskedFor(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	known := definition(t, admin, nil)
	ns := c.Namespace(t)
	kc := asking(ns, initialList(known.Name, known.Name))
	require.NoError(t, admin.Create(t.Context(), kc))
	user := c.with(t, ns, []permission{in(v1alpha1.Group, "kubernetesclusters", "use")})
	kc.Labels = map[string]string{"a": "b"}
	require.NoError(t, user.Update(t.Context(), kc), "labels alone")
	kc.Annotations[v1alpha1.InitialInstallationsAnnotation] = initialList(known.Name)
	require.NoError(t, user.Update(t.Context(), kc), "one less")
	kc.Annotations[v1alpha1.InitialInstallationsAnnotation] = strings.ReplaceAll(initialList(known.Name), "app-0", "another")
	err := user.Update(t.Context(), kc.DeepCopy())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `install applicationdefinitions.apps.waybill.dev "`+known.Name+`"`)
	delete(kc.Annotations, v1alpha1.InitialInstallationsAnnotation)
	require.NoError(t, user.Update(t.Context(), kc), "none")
}
