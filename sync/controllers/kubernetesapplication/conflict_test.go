package kubernetesapplication_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/test/hub"
)

// stranger is a resource that no application here made.
func (w *world) stranger(name string, change func(*v1alpha1.KubernetesApplicationResource)) *v1alpha1.KubernetesApplicationResource {
	w.T.Helper()
	kar := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: named(name),
		Spec:       v1alpha1.KubernetesApplicationResourceSpec{Template: configMap(w.T, "theirs").Spec.Template},
	}
	if change != nil {
		change(kar)
	}
	w.Create(kar)
	return kar
}

func (w *world) ownerMark(hubID, app string) string {
	return apply.Owner{HubID: hubID, Kind: v1alpha1.KubernetesApplicationKind, Namespace: w.Namespace, Name: app}.String()
}

func controller(kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}
}

// W46, W49: a name that is taken is a conflict; the stranger stays as it is, whatever its owner.
func TestConflict_strangersAreLeftAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		says   string
		change func(*world, *v1alpha1.KubernetesApplicationResource)
	}{
		"of nobody": {"has no owner", func(*world, *v1alpha1.KubernetesApplicationResource) {}},
		"of an application of another hub": {"/web of hub another-hub", func(w *world, k *v1alpha1.KubernetesApplicationResource) {
			k.Annotations = map[string]string{v1alpha1.OwnerAnnotation: w.ownerMark("another-hub", "web")}
		}},
		"of another kind of the same name": {"belongs to GitSync ", func(w *world, k *v1alpha1.KubernetesApplicationResource) {
			gs := &v1alpha1.GitSync{ObjectMeta: named("web"), Spec: v1alpha1.GitSyncSpec{URL: "https://git.example.com/x"}}
			w.Create(gs)
			k.OwnerReferences = []metav1.OwnerReference{controller(v1alpha1.GitSyncKind, "web", gs.UID)}
			k.Annotations = map[string]string{v1alpha1.OwnerAnnotation: w.ownerMark(w.process.HubID, "web")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.addCluster("oslo", nil)
			taken := w.stranger("taken", func(k *v1alpha1.KubernetesApplicationResource) { tc.change(w, k) })
			app := w.submit(application("web", configMap(t, "free"), configMap(t, "taken")))
			message := hub.AwaitReason(w.World, app, v1alpha1.ResourceConflictReason)
			assert.Contains(t, message, "KubernetesApplicationResource taken exists and ")
			assert.Contains(t, message, tc.says)
			w.say("free", "")
			w.awaitState(app, v1alpha1.StatePartiallySubmitted)
			assert.Equal(t, taken, w.resource("taken"), "nothing was written")
		})
	}
}

// W46: when the stranger is gone the name is free.
func TestConflict_endsWhenTheStrangerGoes(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	taken := w.stranger("taken", nil)
	app := w.submit(application("web", configMap(t, "taken")))
	hub.AwaitReason(w.World, app, v1alpha1.ResourceConflictReason)
	require.NoError(t, w.Client.Delete(t.Context(), taken))
	w.awaitState(app, v1alpha1.StateScheduled)
	assert.True(t, metav1.IsControlledBy(w.resource("taken"), app))
}

// W46: of two applications with a template of one name, the first has it, and the second when
// the first is gone.
func TestConflict_betweenApplications(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	first := w.submit(application("first", configMap(t, "cool")))
	w.awaitState(first, v1alpha1.StateScheduled)
	second := w.submit(application("second", configMap(t, "cool")))
	hub.AwaitReason(w.World, second, v1alpha1.ResourceConflictReason)
	kar := w.resource("cool")
	assert.True(t, metav1.IsControlledBy(kar, first))

	require.NoError(t, w.Client.Delete(t.Context(), first))
	require.True(t, w.Eventually(func() bool { return w.Exists(kar, "cool") && !kar.DeletionTimestamp.IsZero() }))
	w.release(kar)
	w.awaitState(second, v1alpha1.StateScheduled)
	assert.True(t, metav1.IsControlledBy(w.resource("cool"), second))
	w.AwaitGone(first, "first")
}

// C40: after a restore, resources with the UID of an earlier life, or none, are taken up.
func TestRestore_takesUpItsOwn(t *testing.T) {
	for name, references := range map[string][]metav1.OwnerReference{
		"with a controller that is gone": {controller(v1alpha1.KubernetesApplicationKind, "web", "of-an-earlier-life")},
		"without one":                    nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newOwnWorld(t) // where no garbage collector comes first
			w.start()
			w.addCluster("oslo", nil)
			kept := w.stranger("kept", func(k *v1alpha1.KubernetesApplicationResource) {
				k.OwnerReferences = references
				k.Annotations = map[string]string{v1alpha1.OwnerAnnotation: w.ownerMark(w.process.HubID, "web")}
				k.Spec.Template = configMap(t, "kept").Spec.Template
				k.Spec.ClusterName = "oslo"
			})
			dropped := w.stranger("dropped", func(k *v1alpha1.KubernetesApplicationResource) {
				k.OwnerReferences = references
				k.Annotations = map[string]string{v1alpha1.OwnerAnnotation: w.ownerMark(w.process.HubID, "web")}
				k.Finalizers = []string{v1alpha1.Finalizer}
			})
			app := application("web", configMap(t, "kept"))
			app.Spec.ClusterName = "oslo"
			w.awaitState(w.submit(app), v1alpha1.StateScheduled)
			now := w.resource("kept")
			assert.Equal(t, kept.UID, now.UID)
			assert.True(t, metav1.IsControlledBy(now, app))
			assert.Len(t, now.OwnerReferences, 1)
			require.True(t, w.Eventually(func() bool { return w.Exists(dropped, "dropped") && !dropped.DeletionTimestamp.IsZero() }),
				"what no template names any more goes")
		})
	}
}
