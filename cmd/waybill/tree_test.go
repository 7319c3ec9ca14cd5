package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// fleetExample is a GitSync of the hub that delivers an installation, which has a Deployment
// and a ConfigMap, to berlin, and the same to dublin, which does not answer.
type fleetExample struct {
	hub, user *env.Cluster
	clusters  string // namespace of the hub
	apps      string // namespace of the user cluster
}

func newFleetExample(t *testing.T) fleetExample {
	t.Helper()
	f := fleetExample{hub: hub(t), user: user(t)}
	f.clusters, f.apps = f.hub.Namespace(t), f.user.Namespace(t)
	h, u := clientOf(t, f.hub), clientOf(t, f.user)

	web := installation(f.apps, "web", f.clusters, "1.0.0")
	web.Status.Application = &v1alpha1.ResolvedApplication{Name: f.clusters, Version: "1.0.0", Method: "helm", Namespace: f.apps}
	web.Status.Conditions = []metav1.Condition{condition("Ready", "True", "Succeeded", "installed web-1.0.0")}
	web.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{
		{ID: f.apps + "_web_apps_Deployment", Version: "v1"},
		{ID: f.apps + "_web__ConfigMap", Version: "v1"},
		{ID: f.apps + "_gone__Secret", Version: "v1"},
		{ID: f.apps + "_odd_example.com_Widget", Version: "v1"},
	}}
	create(t, u, web, deployment(f.apps, "web"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.apps, Name: "web"}})
	require.Eventually(t, func() bool {
		d := &appsv1.Deployment{}
		return u.Get(t.Context(), client.ObjectKey{Namespace: f.apps, Name: "web"}, d) == nil && d.Status.AvailableReplicas == 1
	}, limit, often)

	engage(t, h, f.clusters, "berlin", f.user.Kubeconfig())
	engage(t, h, f.clusters, "dublin", deadKubeconfig(t, f.user))
	dublin := &v1alpha1.KubernetesCluster{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Namespace: f.clusters, Name: "dublin"}, dublin))
	dublin.Status.Installations = []v1alpha1.InstallationSummary{{Namespace: "far", Name: "web", Definition: f.clusters, Version: "1.0.0", Ready: "True"}}
	require.NoError(t, h.Status().Update(t.Context(), dublin))

	teamA := gitSync(f.clusters, "team-a")
	teamA.Status.Revision = "main@sha1:4f2a"
	teamA.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{
		{ID: f.apps + "_web_apps.waybill.dev_ApplicationInstallation", Version: "v1alpha1"},
	}}
	teamA.Status.Clusters = []v1alpha1.GitSyncClusterStatus{
		{Name: "berlin", Ready: true, Revision: "main@sha1:4f2a"},
		{Name: "dublin", Reason: "ClusterUnreachable", Message: "no answer"},
	}
	create(t, h, teamA, definition(f.clusters, "1.0.0"))
	return f
}

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "nginx:1.29"}}},
			},
		},
	}
}

// lines returns the indented names of a printed tree, generated suffixes cut off, and the
// health behind them.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		at := strings.IndexFunc(line, func(r rune) bool { return r >= 'A' && r <= 'Z' })
		words := strings.Fields(line[at:])
		name := words[0]
		if parts := strings.SplitN(name, "-", 2); strings.HasPrefix(name, "ReplicaSet/") || strings.HasPrefix(name, "Pod/") {
			name = parts[0]
		}
		health := ""
		for _, word := range words[1:] {
			if strings.Contains(" Current InProgress Failed Terminating NotFound Unknown ", " "+word+" ") {
				health = " " + word
				break
			}
		}
		all = append(all, line[:at]+name+health)
	}
	return all[1:]
}

// P9, K69, A92: from the repository down to the Pods, in every cluster.
func TestTree_ofGitSync(t *testing.T) {
	f := newFleetExample(t)
	got := waybill(t, f.hub, "tree", "team-a", "-n", f.clusters)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{
		"GitSync/team-a InProgress",
		"├─ KubernetesCluster/berlin Current",
		"│  └─ ApplicationInstallation/web Current",
		"│     ├─ Application/web NotFound",
		"│     ├─ ConfigMap/web Current",
		"│     ├─ Deployment/web Current",
		"│     │  └─ ReplicaSet/web Current",
		"│     │     └─ Pod/web Current",
		"│     ├─ Secret/gone NotFound",
		"│     └─ Widget/odd NotFound",
		"└─ KubernetesCluster/dublin Unknown",
	}, lines(got.out), got.out)
	assert.Contains(t, got.out, "installed web-1.0.0")
	assert.Contains(t, got.out, "the cluster does not offer this kind")

	got = waybill(t, f.hub, "tree", "gitsync/team-a", "-n", f.clusters, "--depth", "2")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{
		"GitSync/team-a InProgress",
		"├─ KubernetesCluster/berlin Current",
		"│  └─ ApplicationInstallation/web Current",
		"└─ KubernetesCluster/dublin Unknown",
	}, lines(got.out), got.out)
}

// K69: who runs a definition, with what is known of clusters that do not answer.
func TestTree_ofDefinition(t *testing.T) {
	f := newFleetExample(t)
	got := waybill(t, f.hub, "tree", f.clusters, "--depth", "2")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{
		"ApplicationDefinition/" + f.clusters + " InProgress",
		"├─ KubernetesCluster/berlin Current",
		"│  └─ ApplicationInstallation/web Current",
		"└─ KubernetesCluster/dublin Unknown",
		"   └─ ApplicationInstallation/web Unknown",
	}, lines(got.out), got.out)
	assert.Contains(t, got.out, "last seen with Ready=True")
}

func TestTree_ofClusterAndForPrograms(t *testing.T) {
	f := newFleetExample(t)
	got := waybill(t, f.hub, "tree", "cluster", "berlin", "-n", f.clusters, "-o", "json")
	require.Equal(t, 0, got.code, got.errOut)
	type node struct {
		Kind, Name, Namespace, Cluster, Health, Version string
		Children                                        []node
	}
	var root node
	require.NoError(t, json.Unmarshal([]byte(got.out), &root))
	assert.Equal(t, "KubernetesCluster", root.Kind)
	var web *node
	for i := range root.Children {
		if root.Children[i].Namespace == f.apps {
			web = &root.Children[i]
		}
	}
	require.NotNil(t, web)
	assert.Equal(t, "berlin", web.Cluster)
	assert.Equal(t, "1.0.0", web.Version)
	assert.Equal(t, "Current", web.Health)
	assert.Len(t, web.Children, 5)
}

func TestTree_refuses(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	one, two := cluster.Namespace(t), cluster.Namespace(t)
	create(t, c, gitSync(one, "twice"), gitSync(two, "twice"))
	cases := map[string]struct {
		args []string
		want string
	}{
		"a name that is nowhere":     {[]string{"nowhere"}, "no object of the kinds GitSync, ApplicationDefinition, KubernetesCluster, KubernetesApplication, KubernetesApplicationResource, ApplicationInstallation, Application, StatefulApplication is called nowhere"},
		"a name that is there twice": {[]string{"twice"}, "choose one with -n"},
		"a depth below zero":         {[]string{"twice", "--depth", "-1"}, "--depth must be 0 or more"},
		"several objects":            {[]string{"gitsync/a", "gitsync/b"}, "name one object: the tree of 2 is a forest"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := waybill(t, cluster, append([]string{"tree"}, tc.args...)...)
			assert.Equal(t, 2, got.code)
			assert.Contains(t, got.errOut, tc.want)
		})
	}
}
