package gitsync_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// P12
func TestGitSync_oneBadManifestHoldsUpNoGoodOne(t *testing.T) {
	cases := map[string]struct {
		reason   string
		manifest string
		says     string
	}{
		"no YAML":   {"what cannot be parsed is named with its file", "a: [", "bad.yaml:1"},
		"refused":   {"the API server's words are kept", "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 0}]}\n", "spec.ports[0].port"},
		"no kind":   {"a kind that nobody serves is named", "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: bad}\n", "Nothing.example.com"},
		"duplicate": {"two documents for one object: neither is applied, both files are named (C59)", configMap("good-0", "x"), "good-0.yaml"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			files := map[string]string{"bad.yaml": c.manifest}
			for _, name := range []string{"good-0", "good-1", "good-2"} {
				files[name+".yaml"] = configMap(name, "x")
			}
			w.commit(files)
			gs := hub.Await(w.World, w.sync(nil), "the GitSync tells", func(gs *v1alpha1.GitSync) bool {
				ready := conditions.Get(gs, v1alpha1.ReadyCondition)
				return ready != nil && ready.Status != metav1.ConditionTrue && gs.Status.ObservedGeneration == gs.Generation
			})
			w.AwaitThere(&corev1.ConfigMap{}, "good-1")
			w.AwaitThere(&corev1.ConfigMap{}, "good-2")
			assert.Contains(t, conditions.GetMessage(gs, v1alpha1.ReadyCondition), c.says, c.reason)

			w.remove("bad.yaml")
			hub.Reconcile(w.World, gs)
			hub.AwaitReady(w.World, gs)
			assert.True(t, w.Exists(&corev1.ConfigMap{}, "good-0"))
		})
	}
}

// C59: a document that names no namespace and one that names the namespace which is filled in
// are documents for one object, too.
func TestGitSync_duplicatesAreFoundOnceNamespacesAreKnown(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{
		"bare.yaml":  configMap("a", "one"),
		"named.yaml": strings.Replace(configMap("a", "two"), "name: a", "name: a\n  namespace: "+w.Namespace, 1),
		"other.yaml": configMap("b", "x"),
	})
	gs := w.sync(nil)
	hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason)
	require.Len(t, gs.Status.Problems, 2)
	for i, want := range []struct{ file, other string }{{"bare.yaml", "named.yaml"}, {"named.yaml", "bare.yaml"}} {
		assert.Equal(t, want.file, gs.Status.Problems[i].File)
		assert.Contains(t, gs.Status.Problems[i].Message, want.other)
	}
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "a"), "which is meant is not known")
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "b"))

	w.remove("named.yaml")
	hub.Reconcile(w.World, gs)
	hub.AwaitReady(w.World, gs)
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "a"))
}

// P12: what a broken file held before is not known, so it is not considered removed.
func TestGitSync_brokenFileRemovesNothing(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "x"), "b.yaml": configMap("b", "x")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	w.commit(map[string]string{"a.yaml": "a: ["})
	hub.Reconcile(w.World, gs)
	hub.AwaitReason(w.World, gs, v1alpha1.InvalidManifestReason)
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "a"))
}

func TestGitSync_emptyPathRemovesNothingUnlessAllowed(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"apps/a.yaml": configMap("a", "x")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.Path = "apps" }))
	w.remove("apps/a.yaml")
	w.commit(map[string]string{"apps/README.md": "nothing here"})
	hub.Reconcile(w.World, gs)
	assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.EmptyPathReason), "allowEmpty")
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "a"))

	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.AllowEmpty = true })
	w.AwaitGone(&corev1.ConfigMap{}, "a")
	hub.AwaitReady(w.World, gs)
}

// P13
func TestGitSync_unreachableServerKeepsTheLastState(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "x")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	w.server.Shut()
	hub.Reconcile(w.World, gs)
	hub.AwaitReason(w.World, gs, v1alpha1.GitUnreachableReason)

	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "a"))
	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "a")
	assert.Equal(t, v1alpha1.GitUnreachableReason, w.reasonNow(gs), "drift is corrected without the server")

	require.NoError(t, w.server.Open())
	hub.AwaitReady(w.World, gs)
}

// P13: a server that does not answer holds up neither drift correction nor the report of health.
func TestGitSync_keepsWhatIsDeliveredWhileItsServerHangs(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{
		"a.yaml":   configMap("a", "x"),
		"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: pod}\nspec: {containers: [{name: pod, image: pod}]}\n",
	})
	gs := w.sync(func(s *v1alpha1.GitSyncSpec) { s.Wait = true })
	w.setReady(corev1.ConditionTrue)
	hub.AwaitReady(w.World, gs)
	require.NoError(t, w.server.Hang())
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) {
		gs.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
	})
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "a"))
	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "a")
	w.setReady(corev1.ConditionFalse)
	hub.AwaitReason(w.World, gs, v1alpha1.ProgressingReason)
	assert.NotEqual(t, "now", gs.Status.LastHandledReconcileAt, "the server has not answered yet")
	require.NoError(t, w.server.Open())
	hub.Await(w.World, gs, "the request is handled", func(gs *v1alpha1.GitSync) bool { return gs.Status.LastHandledReconcileAt == "now" })
	w.setReady(corev1.ConditionTrue)
	hub.AwaitReady(w.World, gs)
}

// setReady plays the node of the Pod `pod`.
func (w *world) setReady(ready corev1.ConditionStatus) {
	w.T.Helper()
	pod := &corev1.Pod{}
	w.AwaitThere(pod, "pod")
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), pod, client.MergeFrom(before)))
}

func TestGitSync_saysWhatIsWrongWithTheSource(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.GitSyncSpec)
		want   string
		says   string
	}{
		"no such branch": {"the branch is named", func(s *v1alpha1.GitSyncSpec) { s.Ref = &v1alpha1.GitReference{Branch: "nope"} }, v1alpha1.GitReferenceNotFoundReason, "nope"},
		"no such folder": {"the folder is named", func(s *v1alpha1.GitSyncSpec) { s.Path = "nope" }, v1alpha1.PathNotFoundReason, "nope"},
		"no such Secret": {"the Secret is named", func(s *v1alpha1.GitSyncSpec) { s.SecretRef.Name = "nope" }, v1alpha1.SecretNotFoundReason, "nope"},
		"unknown CA":     {"the server is not trusted", func(s *v1alpha1.GitSyncSpec) { s.SecretRef = nil }, v1alpha1.GitAuthenticationFailedReason, "certificate"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(map[string]string{"a.yaml": configMap("a", "x")})
			message := hub.AwaitReason(w.World, w.sync(c.change), c.want)
			assert.Contains(t, message, c.says, c.reason)
		})
	}
}

func TestGitSync_missingSecretArrives(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "x")})
	gs := w.sync(func(s *v1alpha1.GitSyncSpec) { s.SecretRef.Name = "late" })
	hub.AwaitReason(w.World, gs, v1alpha1.SecretNotFoundReason)
	w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Data: map[string][]byte{"ca.crt": hub.Authority(t)}})
	hub.AwaitReady(w.World, gs)
}

func TestGitSync_followsAForcePush(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	_, err := w.repo.Amend(t.Context(), map[string]string{"a.yaml": configMap("a", "rewritten")})
	require.NoError(t, err)
	hub.Reconcile(w.World, gs)
	hub.AwaitReady(w.World, gs)
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "a"))
	assert.Equal(t, "rewritten", cm.Data["key"])
}
