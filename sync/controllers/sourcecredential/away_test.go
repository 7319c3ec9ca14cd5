package sourcecredential_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K57, K60: a seed that is away delays no other, and is as it should be when it is back.
func TestSeed_thatIsAway(t *testing.T) {
	s := newSuite(t)
	gate, config := s.gated("user")
	s.secret("first", "one", "helm")
	s.engage(s.newSeed("seed"), shared(t, "seed").RESTConfig())
	until(t, s.seed, s.system, "first", "one")
	away := s.engage(s.newSeed("away"), config)
	for _, name := range []string{"removed", "rotated"} {
		s.secret(name, "one", "helm")
		until(t, s.user, s.system, name, "one")
	}
	gate.Shut()
	s.says(away, metav1.ConditionFalse, v1alpha1.ClusterUnreachableReason,
		"the cluster cannot be used: copies stay as they are until it can, see the condition Ready")
	require.NoError(t, s.Delete(t.Context(), find(t, s, s.system, "removed")))
	change(t, s, s.system, "rotated", func(secret *corev1.Secret) { secret.Data["password"] = []byte("two") })
	s.secret("new", "three", "git")
	until(t, s.seed, s.system, "removed", "")
	until(t, s.seed, s.system, "rotated", "two")
	until(t, s.seed, s.system, "new", "three")
	assert.Equal(t, "one", password(find(t, s.user, s.system, "rotated")))
	change(t, s.user, s.system, "rotated", func(secret *corev1.Secret) { secret.Data["password"] = []byte("changed on both sides") })

	require.NoError(t, gate.Open())
	until(t, s.user, s.system, "removed", "")
	until(t, s.user, s.system, "rotated", "two")
	until(t, s.user, s.system, "new", "three")
	s.says(away, metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: 3", s.system))
}

// K60: what was deleted, changed or unmarked while no watch ran is found when the process is back.
func TestSeed_afterARestart(t *testing.T) {
	s := newSuite(t)
	seed := s.engage(s.newSeed("seed"), shared(t, "seed").RESTConfig())
	for _, name := range []string{"deleted", "unannotated", "rotated", "edited"} {
		s.secret(name, "one", "helm")
		until(t, s.seed, s.system, name, "one")
	}
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.system, Name: "forged", Labels: map[string]string{v1alpha1.CopyOfLabel: hubID},
			Annotations: map[string]string{v1alpha1.OwnerAnnotation: hubID + "/Secret/" + s.system + "/another"},
		},
		Data: map[string][]byte{"password": []byte("theirs")},
	}
	require.NoError(t, s.seed.Create(t.Context(), foreign))
	s.stop()
	require.NoError(t, s.Delete(t.Context(), find(t, s, s.system, "deleted")))
	change(t, s, s.system, "unannotated", func(secret *corev1.Secret) { secret.Annotations = nil })
	change(t, s, s.system, "rotated", func(secret *corev1.Secret) { secret.Data["password"] = []byte("two") })
	change(t, s.seed, s.system, "edited", func(secret *corev1.Secret) { secret.Data["password"] = []byte("edited") })
	s.start()
	s.ensure(seed, shared(t, "seed").RESTConfig())
	until(t, s.seed, s.system, "deleted", "")
	until(t, s.seed, s.system, "unannotated", "")
	until(t, s.seed, s.system, "rotated", "two")
	until(t, s.seed, s.system, "edited", "one")
	s.says(seed, metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: 2", s.system))
	assert.Equal(t, "theirs", password(find(t, s.seed, s.system, "forged")), "its mark names another Secret")
}

// A seed that is paused, or removed, is left alone: the controller that removes it deletes the copies.
func TestSeed_thatGoes(t *testing.T) {
	s := newSuite(t)
	seed := s.newSeed("seed")
	seed.Finalizers = []string{v1alpha1.Finalizer}
	s.engage(seed, shared(t, "seed").RESTConfig())
	last := s.engage(s.newSeed("last"), shared(t, "user").RESTConfig())
	s.secret("charts", "one", "helm")
	until(t, s.seed, s.system, "charts", "one")
	until(t, s.user, s.system, "charts", "one")
	require.NoError(t, s.Delete(t.Context(), seed))
	t.Cleanup(func() { s.release(seed) })
	require.Eventually(t, func() bool {
		cached := &v1alpha1.KubernetesCluster{}
		return s.registry.Local().Client().Get(t.Context(), client.ObjectKeyFromObject(seed), cached) == nil && !cached.DeletionTimestamp.IsZero()
	}, limit, often)
	require.NoError(t, s.seed.Delete(t.Context(), find(t, s.seed, s.system, "charts")))
	s.secret("git", "two", "git")
	until(t, s.user, s.system, "git", "two")
	s.says(last, metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: 2", s.system))
	assert.Empty(t, s.names(s.seed))
}

// release lets a KubernetesCluster go that is being deleted.
func (s *suite) release(kc *v1alpha1.KubernetesCluster) {
	require.NoError(s.t, s.Patch(context.WithoutCancel(s.t.Context()), kc, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
}
