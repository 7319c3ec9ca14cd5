package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// suspended reports whether a GitSync is.
func suspended(t *testing.T, c client.Client, namespace, name string) bool {
	t.Helper()
	gs := &v1alpha1.GitSync{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, gs))
	return gs.Spec.Suspend
}

// An object is found wherever it is, unless several could be meant.
func TestSearch_inAnyNamespace(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	one, two := cluster.Namespace(t), cluster.Namespace(t)
	if one > two {
		one, two = two, one // candidates are listed in order
	}
	only, twice, here := "only-"+one, "twice-"+one, "here-"+one // unique among the tests that share the cluster
	berlin := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: two, Name: twice}}
	create(t, c, gitSync(one, only), gitSync(one, twice), gitSync(two, twice), gitSync(metav1.NamespaceDefault, here), gitSync(two, here), berlin)

	for name, tc := range map[string]struct {
		args      []string
		namespace string
		object    string
	}{
		"the only one of the name":               {[]string{"suspend", "gitsync/" + only}, one, only},
		"by a name alone":                        {[]string{"resume", only}, one, only},
		"by a short name of the kind":            {[]string{"suspend", "gs", only}, one, only},
		"the one in the kubeconfig's namespace":  {[]string{"suspend", "gitsync/" + here}, metav1.NamespaceDefault, here},
		"the one in the namespace of the flag":   {[]string{"suspend", "gitsync/" + twice, "-n", two}, two, twice},
		"by a name alone, in that of the flag":   {[]string{"suspend", twice, "-n", one}, one, twice},
		"the one that is asked to be reconciled": {[]string{"reconcile", "--wait=false", only}, one, only},
	} {
		t.Run(name, func(t *testing.T) {
			got := waybill(t, cluster, tc.args...)
			require.Equal(t, 0, got.code, got.errOut)
			assert.Contains(t, got.out, "GitSync/"+tc.object+" in "+tc.namespace)
			if tc.args[0] != "reconcile" {
				assert.Equal(t, tc.args[0] == "suspend", suspended(t, c, tc.namespace, tc.object))
			}
		})
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"of a kind": {[]string{"suspend", "gitsync/" + twice},
			twice + " is the name of 2 objects, GitSync/" + twice + " in " + one + ", GitSync/" + twice + " in " + two + ": choose one with -n"},
		"of several kinds": {[]string{"reconcile", "--wait=false", twice, "-n", two},
			twice + " is the name of 2 objects, GitSync/" + twice + " in " + two + ", KubernetesCluster/" + twice + " in " + two + ": write KIND/" + twice + ", and name the namespace with -n"},
		"of nothing": {[]string{"suspend", "gitsync/none-" + one}, "no GitSync is called none-" + one + ", in any namespace of cluster "},
		"alone":      {[]string{"suspend", "none-" + one}, "no object of the kinds GitSync, KubernetesCluster is called none-" + one},
	} {
		t.Run("several "+name, func(t *testing.T) {
			got := waybill(t, cluster, tc.args...)
			assert.Equal(t, 2, got.code)
			assert.Contains(t, got.errOut, tc.want)
			assert.Empty(t, got.out)
		})
	}
	assert.False(t, suspended(t, c, two, here), "nothing else was changed")
}

// A40: rights in one namespace are enough for what is there.
func TestSearch_withRightsInOneNamespace(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	create(t, c, gitSync(namespace, "only-"+namespace))
	kubeconfig, _ := userWith(t, cluster, namespace, right(v1alpha1.Group, []string{"gitsyncs"}, "get", "patch"))
	got := waybillWith(t, "", "suspend", "gitsync/only-"+namespace, "-n", namespace, "--kubeconfig", kubeconfig)
	require.Equal(t, 0, got.code, got.errOut)
	got = waybillWith(t, "", "suspend", "gitsync/only-"+namespace, "--kubeconfig", kubeconfig)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "GitSync/only-"+namespace+" in default")
	assert.True(t, strings.Contains(got.errOut, "forbidden"), got.errOut)
}
