package gitsync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

const deploymentText = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`

// scale does what a HorizontalPodAutoscaler does.
func (w *world) scale(replicas int32) {
	w.T.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "web"}}
	require.NoError(w.T, w.Client.SubResource("scale").Update(w.T.Context(), d, client.FieldOwner("kube-controller-manager"),
		client.WithSubResourceBody(&autoscalingv1.Scale{ObjectMeta: d.ObjectMeta, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}})))
}

func (w *world) replicas() int32 {
	w.T.Helper()
	d := &appsv1.Deployment{}
	require.True(w.T, w.Exists(d, "web"))
	return *d.Spec.Replicas
}

// An autoscaler and a GitSync do not fight over the replicas: until the entry is removed, which has the
// manifest applied again without another commit.
func TestGitSync_leavesWhatIsIgnored(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"web.yaml": deploymentText})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) {
		s.IgnoreDifferences = []v1alpha1.IgnoredDifference{{
			Target: &v1alpha1.DifferenceTarget{Kind: "Deployment", LabelSelector: "tier=web"}, JSONPointers: []string{"/spec/replicas"},
		}}
	}))
	assert.EqualValues(t, 2, w.replicas(), "it begins with what the manifest says")
	for _, n := range []int32{5, 9} {
		w.scale(n)
		hub.Reconcile(w.World, gs)
		assert.Equal(t, n, w.replicas())
	}
	w.commit(map[string]string{"web.yaml": deploymentText + "# again\n"})
	hub.AwaitReady(w.World, hub.Reconcile(w.World, gs))
	assert.EqualValues(t, 9, w.replicas())
	told := &eventsv1.EventList{}
	require.NoError(t, w.Client.List(t.Context(), told, client.InNamespace(w.Namespace)))
	for _, e := range told.Items {
		assert.NotEqual(t, v1alpha1.DriftCorrectedReason, e.Reason, e.Note)
	}

	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.IgnoreDifferences = nil })
	require.True(t, w.Eventually(func() bool { return w.replicas() == 2 }))
}

// What could have no meaning, or take the marks of Waybill away, is not stored, with or without admission.
func TestGitSync_schemaOfIgnoredFields(t *testing.T) {
	w := newWorld(t)
	for pointer, stored := range map[string]bool{
		"/spec/replicas": true, "/spec/template/spec/containers/0/image": true, "/metadata/labels/a~1b": true,
		"spec": false, "": false, "/a~2": false, "/kind": false, "/metadata": false, "/metadata/name": false, "/metadata/annotations": false,
		"/metadata/annotations/apps.waybill.dev~1owner": false, "/metadata/labels/apps.waybill.dev~1owner-hash": false,
	} {
		gs := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, GenerateName: "a-"}, Spec: v1alpha1.GitSyncSpec{
			URL: "https://example.com/a", Suspend: true, IgnoreDifferences: []v1alpha1.IgnoredDifference{{JSONPointers: []string{pointer}}},
		}}
		err := w.Client.Create(t.Context(), gs, client.DryRunAll)
		assert.Equal(t, stored, err == nil, "%s: %v", pointer, err)
	}
}

// K64: what a KubernetesCluster asks for once is written when it is created. What is carried out, or taken away by
// hand, does not come back, whatever else changes in git; everything else of the object follows git.
func TestGitSync_asksForInstallationsOnce(t *testing.T) {
	w := newWorld(t)
	const list = v1alpha1.InitialInstallationsAnnotation
	manifest := func(env, annotation string) string {
		return "apiVersion: apps.waybill.dev/v1alpha1\nkind: KubernetesCluster\nmetadata:\n  name: eu-1\n  labels: {env: " + env + "}\n" +
			"  annotations: {note: " + env + ", " + list + ": '" + annotation + "'}\nspec: {kubeconfigSecretRef: {name: eu-1}}\n"
	}
	const one, both = `[{"metadata":{"name":"a","namespace":"a"}}]`, `[{"metadata":{"name":"a","namespace":"a"}},{"metadata":{"name":"b","namespace":"a"}}]`
	w.commit(map[string]string{"eu-1.yaml": manifest("test", both)})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	kc := &v1alpha1.KubernetesCluster{}
	require.True(t, w.Exists(kc, "eu-1"))
	require.Equal(t, both, kc.Annotations[list])

	for i, left := range []string{one, ""} {
		hub.Change(w.World, kc, func(kc *v1alpha1.KubernetesCluster) {
			if kc.Annotations[list] = left; left == "" {
				delete(kc.Annotations, list)
			}
		})
		hub.AwaitReady(w.World, hub.Reconcile(w.World, gs))
		require.True(t, w.Exists(kc, "eu-1"))
		assert.Equal(t, left, kc.Annotations[list], "it is no drift")
		env := []string{"staging", "prod"}[i]
		w.commit(map[string]string{"eu-1.yaml": manifest(env, both)})
		hub.AwaitReady(w.World, hub.Reconcile(w.World, gs))
		require.True(t, w.Exists(kc, "eu-1"))
		assert.Equal(t, left, kc.Annotations[list], "another commit does not ask for it again")
		assert.Equal(t, env, kc.Labels["env"])
		assert.Equal(t, env, kc.Annotations["note"])
	}
	told := &eventsv1.EventList{}
	require.NoError(t, w.Client.List(t.Context(), told, client.InNamespace(w.Namespace)))
	for _, e := range told.Items {
		assert.NotEqual(t, v1alpha1.DriftCorrectedReason, e.Reason, e.Note)
	}
}
