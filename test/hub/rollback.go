package hub

import (
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// Rollback creates an ApplicationRollback in the namespace of the test that holds some objects of it, and
// writes its status as its controller does.
func (w *World) Rollback(name string, phase v1alpha1.RollbackPhase, held ...v1alpha1.HeldObject) *v1alpha1.ApplicationRollback {
	w.T.Helper()
	r := &v1alpha1.ApplicationRollback{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ApplicationRollbackSpec{
			SnapshotClassName: "any", ApplicationName: "shop",
			Source: v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: "before"}},
		},
	}
	w.Create(r)
	r.Status.Phase = phase
	for _, h := range held {
		h.Namespace = w.Namespace
		r.Status.Held = append(r.Status.Held, h)
	}
	require.NoError(w.T, w.Client.Status().Update(w.T.Context(), r))
	return r
}

// Enter writes the phase of a rollback.
func (w *World) Enter(r *v1alpha1.ApplicationRollback, phase v1alpha1.RollbackPhase) {
	w.T.Helper()
	r.Status.Phase = phase
	require.NoError(w.T, w.Client.Status().Update(w.T.Context(), r))
}

// MarkHeld sets the annotation that names who holds an object, or takes it away without a name.
func MarkHeld(o client.Object, by string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[v1alpha1.HeldByAnnotation] = o.GetNamespace() + "/" + by; by == "" {
		delete(annotations, v1alpha1.HeldByAnnotation)
	}
	o.SetAnnotations(annotations)
}
