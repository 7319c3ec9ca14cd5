package statefulapplication_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// S9, S13, C15: without a source, the Application only has to exist; no class is needed.
func TestWrapper(t *testing.T) {
	w := newWorld(t)
	a := &v1alpha1.StatefulApplication{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: "shop"}}
	w.Create(a)
	assert.Contains(t, hub.AwaitReason(w.World, a, v1alpha1.ApplicationNotFoundReason), `Application "shop" does not exist in namespace`)

	shop := &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       v1alpha1.ApplicationSpec{Type: "Shop", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
	}
	w.Create(shop)
	hub.AwaitReady(w.World, a)
	assert.Nil(t, a.Status.Restore)
	assert.Empty(t, a.Finalizers)

	for name, age := range map[string]time.Duration{"older": time.Hour, "newest": time.Minute, "oldest": 2 * time.Hour} {
		s := &v1alpha1.ApplicationSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ApplicationSnapshotSpec{
			SnapshotClassName: "any", Source: v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "data"},
		}}
		w.Create(s)
		before := s.DeepCopy()
		s.Status.Phase, s.Status.CreationTime = v1alpha1.SnapshotReady, ptr.To(metav1.NewTime(time.Now().Add(-age)))
		require.NoError(t, w.Client.Status().Patch(t.Context(), s, client.MergeFrom(before)))
	}
	hub.Await(w.World, a, "newest is not the last snapshot", func(a *v1alpha1.StatefulApplication) bool { return a.Status.LastSnapshot == "newest" })

	require.NoError(t, w.Client.Delete(t.Context(), a))
	w.AwaitGone(&v1alpha1.StatefulApplication{}, "data")
	assert.True(t, w.Exists(shop, "shop"))
}

// S8, S30, S31, S35, C19
func TestRestore_classes(t *testing.T) {
	w := newWorld(t)
	snapshot, _ := w.captured("before", plain, nil)
	class := func(name, handler string, parameters map[string]string) *v1alpha1.StatefulApplicationClass {
		c := &v1alpha1.StatefulApplicationClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name}, Handler: handler, Parameters: parameters}
		w.Create(c)
		return c
	}
	foreign, odd := class("foreign", "example.com", nil), class("odd", v1alpha1.DataHandler, map[string]string{"a": "b"})
	create := func(name, class string) *v1alpha1.StatefulApplication {
		a := clone(name, class, snapshot)
		w.Create(a)
		return a
	}
	others, missing, parameters, unnamed := create("others", foreign.Name), create("missing", w.Namespace+"-late"), create("parameters", odd.Name), create("unnamed", "")

	assert.Contains(t, hub.AwaitReason(w.World, missing, v1alpha1.ClassNotFoundReason), `-late" does not exist`)
	assert.Contains(t, hub.AwaitReason(w.World, parameters, v1alpha1.InvalidClassReason), "has parameters")
	assert.Contains(t, hub.AwaitReason(w.World, unnamed, v1alpha1.ClassNotFoundReason), "no StatefulApplicationClass is the default")

	first, second := class("late", v1alpha1.DataHandler, nil), class("second", v1alpha1.DataHandler, nil)
	hub.AwaitReady(w.World, missing)
	byDefault := func(c *v1alpha1.StatefulApplicationClass) {
		before := c.DeepCopy()
		c.Annotations = map[string]string{v1alpha1.DefaultClassAnnotation: "true"}
		require.NoError(t, w.Client.Patch(t.Context(), c, client.MergeFrom(before)))
	}
	byDefault(first)
	hub.AwaitReady(w.World, unnamed)
	byDefault(second)
	assert.Contains(t, hub.AwaitReason(w.World, create("ambiguous", ""), v1alpha1.ClassNotFoundReason), "are all the default StatefulApplicationClass")

	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(others), others))
	assert.Nil(t, others.Status.Conditions, "it is another handler's")
	assert.Empty(t, others.Finalizers)
}

// S28, S39, C24
func TestRestore_waitsForTheSnapshot(t *testing.T) {
	w := newWorld(t)
	class := w.class(nil)
	early := clone("early", class, &v1alpha1.ApplicationSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "late"}})
	w.Create(early)
	assert.Contains(t, hub.AwaitReason(w.World, early, v1alpha1.SnapshotNotFoundReason), `ApplicationSnapshot "late" does not exist`)

	snapshot, content := w.captured("late", plain, nil)
	hub.AwaitReady(w.World, early)
	assert.Equal(t, content.Name, early.Status.Restore.ContentName)

	// A snapshot that says that it is bound to the content of another restores nothing.
	thief := &v1alpha1.ApplicationSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "thief"}, Spec: snapshot.Spec}
	w.Create(thief)
	w.bind(thief, content.Name)
	robber := clone("robber", class, thief)
	w.Create(robber)
	assert.Contains(t, hub.AwaitReason(w.World, robber, v1alpha1.SnapshotNotReadyReason), "is not bound to ApplicationSnapshot")

	// Rules that lead to nothing valid.
	wrong := clone("wrong", class, snapshot)
	wrong.Spec.ValueSubstitutionRules[0].NewValue = "Not-Valid"
	w.Create(wrong)
	assert.Contains(t, hub.AwaitReason(w.World, wrong, v1alpha1.InvalidRulesReason), `spec.valueSubstitutionRules[0]: `)
}
