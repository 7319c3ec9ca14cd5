package applicationsnapshot

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// C22: no snapshot is deleted that a rollback goes to, or may still go back to.
func TestNeeds(t *testing.T) {
	for phase, want := range map[v1alpha1.RollbackPhase]struct{ to, safety, broken bool }{
		"":                            {},
		v1alpha1.RollbackPending:      {to: true, safety: true, broken: true},
		v1alpha1.RollbackSwapping:     {to: true, safety: true, broken: true},
		v1alpha1.RollbackReverting:    {to: true, safety: true, broken: true},
		v1alpha1.RollbackCompleted:    {safety: true, broken: true},
		v1alpha1.RollbackReverted:     {},
		v1alpha1.RollbackFinal:        {},
		v1alpha1.RollbackFailed:       {broken: true}, // it can be tried again only if it has begun
		v1alpha1.RollbackPhase("new"): {to: true, safety: true, broken: true},
	} {
		b := &v1alpha1.ApplicationRollback{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "back"}}
		b.Spec.Source.SnapshotRef = &v1alpha1.SnapshotReference{Name: "to"}
		b.Status.Phase, b.Status.SafetySnapshot = phase, "safety"
		ref := func(name string) *v1alpha1.NamespacedReference {
			return &v1alpha1.NamespacedReference{Namespace: "ns", Name: name}
		}
		assert.Equal(t, want.to, needs(b, ref("to")), "%s: what it goes to", phase)
		assert.Equal(t, want.safety, needs(b, ref("safety")), "%s: the state before", phase)
		b.Status.Volumes = []v1alpha1.RollbackVolume{{Claim: "data"}}
		assert.Equal(t, want.broken, needs(b, ref("safety")), "%s: the state before, with volumes", phase)
		assert.False(t, needs(b, &v1alpha1.NamespacedReference{Namespace: "other", Name: "safety"}), phase)
		assert.False(t, needs(b, nil), phase)
	}
}
