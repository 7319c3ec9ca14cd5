package sourcecredential_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K55, K56, K57, K60, C13: what is annotated goes to seeds; nothing else leaves, and nothing goes into a user
// cluster, or to a seed that is the hub.
func TestSeed_getsWhatIsAnnotated(t *testing.T) {
	s := newSuite(t)
	s.secret("plain", "private", "")
	s.secret("reached", "kubeconfig", "git")
	s.secret("charts", "one", "anything at all")
	s.secret("empty", "two", "x")
	change(t, s, s.system, "empty", func(secret *corev1.Secret) { secret.Annotations[v1alpha1.SecretTypeAnnotation] = "" })
	other := shared(t, "hub").Namespace(t)
	elsewhere := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "elsewhere", Annotations: map[string]string{v1alpha1.SecretTypeAnnotation: "git"}}}
	require.NoError(t, s.Create(t.Context(), elsewhere))

	seed := s.newSeed("seed")
	seed.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "reached"}
	s.engage(seed, shared(t, "seed").RESTConfig())
	user := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: "user"}}
	s.engage(user, shared(t, "user").RESTConfig())
	stray := s.newSeed("stray") // of a user who may have clusters in another namespace
	stray.Namespace = other
	s.engage(stray, shared(t, "user").RESTConfig())
	itself := s.engage(s.newSeed("itself"), shared(t, "hub").RESTConfig())
	s.says(seed, metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: 2", s.system))

	copied := until(t, s.seed, s.system, "charts", "one")
	assert.Equal(t, find(t, s, s.system, "charts").Data, copied.Data)
	assert.Equal(t, "anything at all", copied.Annotations[v1alpha1.SecretTypeAnnotation], "so that it is one there as well")
	assert.Equal(t, fmt.Sprintf("%s/Secret/%s/charts", hubID, s.system), copied.Annotations[v1alpha1.OwnerAnnotation])
	assert.Equal(t, hubID, copied.Labels[v1alpha1.CopyOfLabel])
	assert.Equal(t, []string{"charts", "empty"}, s.names(s.seed))
	assert.Empty(t, s.names(s.user))
	assert.NotContains(t, find(t, s, s.system, "charts").Annotations, v1alpha1.OwnerAnnotation, "the original is left alone")
	for _, kc := range []*v1alpha1.KubernetesCluster{user, stray, itself} {
		require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(kc), kc))
		assert.Empty(t, kc.Status.Conditions, kc.Name)
	}
}

// names returns the names of all Secrets in the system namespace of a cluster.
func (s *suite) names(c client.Client) []string {
	s.t.Helper()
	list := &corev1.SecretList{}
	require.NoError(s.t, c.List(s.t.Context(), list, client.InNamespace(s.system)))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// K60: whatever becomes of the original becomes of the copy, by watch.
func TestSeed_followsTheOriginal(t *testing.T) {
	s := newSuite(t)
	s.engage(s.newSeed("seed"), shared(t, "seed").RESTConfig())
	s.secret("charts", "one", "helm")
	until(t, s.seed, s.system, "charts", "one")

	change(t, s, s.system, "charts", func(secret *corev1.Secret) {
		secret.Data["password"] = []byte("two")
		delete(secret.Data, "username")
	})
	assert.NotContains(t, until(t, s.seed, s.system, "charts", "two").Data, "username")

	change(t, s, s.system, "charts", func(secret *corev1.Secret) { delete(secret.Annotations, v1alpha1.SecretTypeAnnotation) })
	until(t, s.seed, s.system, "charts", "")
	change(t, s, s.system, "charts", func(secret *corev1.Secret) {
		secret.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "helm"}
	})
	until(t, s.seed, s.system, "charts", "two")

	original := find(t, s, s.system, "charts")
	require.NoError(t, s.Delete(t.Context(), original))
	until(t, s.seed, s.system, "charts", "")

	typed := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: "typed", Annotations: map[string]string{v1alpha1.SecretTypeAnnotation: "git"}},
		Type:       corev1.SecretTypeBasicAuth, Data: map[string][]byte{"username": []byte("a"), "password": []byte("b")},
	}
	require.NoError(t, s.Create(t.Context(), typed.DeepCopy()))
	assert.Equal(t, corev1.SecretTypeBasicAuth, until(t, s.seed, s.system, "typed", "b").Type)
	require.NoError(t, s.Delete(t.Context(), typed.DeepCopy()))
	typed.Type, typed.Data["password"] = corev1.SecretTypeOpaque, []byte("c")
	require.NoError(t, s.Create(t.Context(), typed))
	assert.Equal(t, corev1.SecretTypeOpaque, until(t, s.seed, s.system, "typed", "c").Type)
}

// K60: the hub alone says what a copy is.
func TestSeed_isCorrected(t *testing.T) {
	s := newSuite(t)
	seed := s.engage(s.newSeed("seed"), shared(t, "seed").RESTConfig())
	s.secret("charts", "one", "helm")
	until(t, s.seed, s.system, "charts", "one")
	for reason, edit := range map[string]func(*corev1.Secret){
		"another password": func(secret *corev1.Secret) { secret.Data["password"] = []byte("edited") },
		"no annotation":    func(secret *corev1.Secret) { delete(secret.Annotations, v1alpha1.SecretTypeAnnotation) },
		"no marks":         func(secret *corev1.Secret) { secret.Labels, secret.Annotations = nil, nil },
	} {
		change(t, s.seed, s.system, "charts", edit)
		require.Eventually(t, func() bool {
			found := find(t, s.seed, s.system, "charts")
			return password(found) == "one" && found.Annotations[v1alpha1.SecretTypeAnnotation] == "helm" &&
				found.Annotations[v1alpha1.OwnerAnnotation] != "" && found.Labels[v1alpha1.CopyOfLabel] == hubID
		}, limit, often, reason)
	}
	require.NoError(t, s.seed.Delete(t.Context(), find(t, s.seed, s.system, "charts")))
	until(t, s.seed, s.system, "charts", "one")
	s.says(seed, metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: 1", s.system))

	change(t, s.seed, s.system, "charts", func(secret *corev1.Secret) { secret.Annotations[v1alpha1.PruneAnnotation] = "disabled" })
	require.NoError(t, s.Delete(t.Context(), find(t, s, s.system, "charts")))
	until(t, s.seed, s.system, "charts", "")
}

// K57, C13: a Secret of another owner is named, and neither overwritten nor deleted.
func TestSeed_foreignSecret(t *testing.T) {
	s := newSuite(t)
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: "charts", Annotations: map[string]string{v1alpha1.SecretTypeAnnotation: "helm"}},
		Data:       map[string][]byte{"password": []byte("theirs")},
	}
	require.NoError(t, s.seed.Create(t.Context(), theirs))
	seed := s.engage(s.newSeed("seed"), shared(t, "seed").RESTConfig())
	s.secret("charts", "ours", "helm")
	s.secret("git", "one", "git")
	s.says(seed, metav1.ConditionFalse, v1alpha1.CopyFailedReason, fmt.Sprintf(
		"Secret %[1]s/charts exists and is not a copy of Secret %[1]s/charts of this hub: delete it, or rename the one of this hub", s.system))
	until(t, s.seed, s.system, "git", "one")
	assert.Equal(t, "theirs", password(find(t, s.seed, s.system, "charts")))

	require.NoError(t, s.Delete(t.Context(), find(t, s, s.system, "charts")))
	s.says(seed, metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: 1", s.system))
	assert.Equal(t, "theirs", password(find(t, s.seed, s.system, "charts")))

	s.secret("charts", "ours", "helm")
	s.says(seed, metav1.ConditionFalse, v1alpha1.CopyFailedReason, fmt.Sprintf(
		"Secret %[1]s/charts exists and is not a copy of Secret %[1]s/charts of this hub: delete it, or rename the one of this hub", s.system))
	require.NoError(t, s.seed.Delete(t.Context(), theirs))
	s.ask(seed)
	until(t, s.seed, s.system, "charts", "ours")
	s.says(seed, metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: 2", s.system))
}

// ask asks for another try.
func (s *suite) ask(kc *v1alpha1.KubernetesCluster) {
	s.t.Helper()
	require.NoError(s.t, s.Get(s.t.Context(), client.ObjectKeyFromObject(kc), kc))
	before := kc.DeepCopy()
	kc.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
	require.NoError(s.t, s.Patch(s.t.Context(), kc, client.MergeFrom(before)))
}
