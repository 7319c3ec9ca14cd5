package kubernetescluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K57, K60: a seed that is removed keeps no source credential of this hub, and everything else. In a user
// cluster, nothing is looked for: there are none.
func TestKubernetesCluster_takesCredentialsFromASeed(t *testing.T) {
	for reason, tc := range map[string]struct {
		role     v1alpha1.ClusterRole
		onDelete v1alpha1.DeletePolicy
		stays    bool
	}{
		"a seed that is drained":   {v1alpha1.ClusterRoleSeed, v1alpha1.DeleteWait, false},
		"a seed that is abandoned": {v1alpha1.ClusterRoleSeed, v1alpha1.DeleteAbandon, false},
		"a user cluster":           {v1alpha1.ClusterRoleUser, v1alpha1.DeleteWait, true},
	} {
		t.Run(reason, func(t *testing.T) {
			h := newHub(t, options{})
			h.add("eu-1", userCluster(t).Kubeconfig(), func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Role, kc.Spec.OnDelete = tc.role, tc.onDelete })
			h.until("eu-1", isReady, "it is engaged")
			user := newClient(t, userCluster(t).RESTConfig())
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.ns}}
			require.NoError(t, client.IgnoreAlreadyExists(user.Create(t.Context(), namespace)))
			secret := func(name, of, hub string) *corev1.Secret {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name, Labels: map[string]string{v1alpha1.CopyOfLabel: hub}}}
				s.Annotations = map[string]string{v1alpha1.OwnerAnnotation: hub + "/Secret/" + h.ns + "/" + of}
				require.NoError(t, user.Create(t.Context(), s))
				t.Cleanup(func() { _ = user.Delete(cleanup(t), s) })
				return s
			}
			ours, theirs, forged := secret("ours", "ours", hubID), secret("theirs", "theirs", "another-hub"), secret("forged", "another", hubID)
			require.NoError(t, h.Delete(t.Context(), h.get("eu-1")))
			h.gone("eu-1")
			there := func(s *corev1.Secret) bool {
				err := user.Get(t.Context(), client.ObjectKeyFromObject(s), s)
				require.NoError(t, client.IgnoreNotFound(err))
				return !apierrors.IsNotFound(err)
			}
			assert.Equal(t, tc.stays, there(ours))
			assert.True(t, there(theirs), "it is of another hub")
			assert.True(t, there(forged), "its mark names another Secret")
		})
	}
}

// K59: what drives clusters with rights in one namespace does not install into the hub.
func TestKubernetesCluster_hubIsRefusedWhereRightsEnd(t *testing.T) {
	h := newHub(t, options{remoteOnly: true})
	require.NoError(t, h.Create(t.Context(), &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "here", Labels: map[string]string{label: h.ns}}}))
	kc := h.until("here", reason(v1alpha1.InvalidKubeconfigReason), "it has no kubeconfig")
	assert.Contains(t, condition(kc, v1alpha1.ReadyCondition).Message, "set spec.kubeconfigSecretRef")
	_, err := h.registry.Get(h.key("here"))
	assert.Error(t, err)
}
