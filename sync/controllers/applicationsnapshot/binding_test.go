package applicationsnapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// static creates a content as an administrator does, with the definitions of a snapshot.
func (w *world) static(name string, of *v1alpha1.ApplicationSnapshot, edit func(*v1alpha1.ApplicationSnapshotContentSpec)) *v1alpha1.ApplicationSnapshotContent {
	w.T.Helper()
	c := &v1alpha1.ApplicationSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name},
		Spec: v1alpha1.ApplicationSnapshotContentSpec{
			SnapshotClassName: w.class.Name, MetadataHandle: of.Status.Metadata, DeletionPolicy: v1alpha1.DeletionPolicyRetain,
		},
	}
	if edit != nil {
		edit(&c.Spec)
	}
	w.Create(c)
	return c
}

// S38, S68, S74, S75, S76: one content, one snapshot, both of one class.
func TestSnapshot_isBoundToAContent(t *testing.T) {
	w := newWorld(t)
	w.application()
	w.class.PreHooks, w.class.PostHooks = nil, nil
	taken := hub.AwaitReady(w.World, w.take())
	for name, test := range map[string]struct {
		edit    func(*v1alpha1.ApplicationSnapshotContentSpec)
		message string
	}{
		"free": {},
		"meant for it": {edit: func(c *v1alpha1.ApplicationSnapshotContentSpec) {
			c.SnapshotRef = &v1alpha1.NamespacedReference{Namespace: w.Namespace, Name: "bound"}
		}},
		"meant for another one": {func(c *v1alpha1.ApplicationSnapshotContentSpec) {
			c.SnapshotRef = &v1alpha1.NamespacedReference{Namespace: "elsewhere", Name: "bound"}
		}, "is for another ApplicationSnapshot"},
		"bound to one before": {func(c *v1alpha1.ApplicationSnapshotContentSpec) {
			c.SnapshotRef = &v1alpha1.NamespacedReference{Namespace: w.Namespace, Name: "bound", UID: "of-the-one-before"}
		}, "is for another ApplicationSnapshot"},
		"another class":   {func(c *v1alpha1.ApplicationSnapshotContentSpec) { c.SnapshotClassName = "other" }, `is of ApplicationSnapshotClass "other", but`},
		"no definitions":  {func(c *v1alpha1.ApplicationSnapshotContentSpec) { c.MetadataHandle = nil }, "has no metadataHandle"},
		"none whatsoever": {message: "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := "none"
			if name != "none whatsoever" {
				wanted = w.static("content", taken, test.edit).Name
			}
			s := w.snapshot("bound", func(s *v1alpha1.ApplicationSnapshot) {
				s.Spec.Source, s.Spec.SnapshotContentName = v1alpha1.SnapshotSource{}, wanted
			})
			if test.message == "" {
				hub.AwaitReady(w.World, s)
				c := w.content(s)
				assert.Equal(t, wanted, c.Name)
				assert.Equal(t, &v1alpha1.NamespacedReference{Namespace: w.Namespace, Name: "bound", UID: string(s.UID)}, c.Spec.SnapshotRef)
				assert.Equal(t, taken.Status.Metadata, s.Status.Metadata)
				of := w.content(taken).Status
				assert.NotEmpty(t, of.Kinds)
				assert.Equal(t, of.Kinds, c.Status.Kinds, "what it takes to restore it is known again")
				assert.Equal(t, of.ApplicationName, c.Status.ApplicationName, "and what can be rolled back to it")
			} else {
				failure := w.awaitFailed(s)
				assert.Equal(t, v1alpha1.ContentConflictReason, failure.Reason)
				assert.Contains(t, failure.Message, test.message)
			}
			require.NoError(t, w.Client.Delete(t.Context(), s))
			w.AwaitGone(s, s.Name)
			if wanted != "none" {
				c := &v1alpha1.ApplicationSnapshotContent{}
				require.True(t, w.Exists(c, wanted), "it is to be retained")
				require.NoError(t, w.Client.Delete(t.Context(), c))
				w.AwaitGone(c, wanted)
			}
			assert.Equal(t, 1, w.stored(taken))
		})
	}
}
