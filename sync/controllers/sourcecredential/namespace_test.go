package sourcecredential_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// define creates a definition whose chart needs a Secret, another for the authority of its server, and whose
// older version comes from git.
func (s *suite) define(name string, selector map[string]string) *v1alpha1.ApplicationDefinition {
	s.t.Helper()
	helm := v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{
		URL: "https://charts.example.com", ChartName: "web", ChartVersion: "2.0.0", CASecretRef: &v1alpha1.LocalReference{Name: name + "-ca"},
		Credentials: &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: name + "-charts"}},
	}}
	git := v1alpha1.ApplicationSource{Git: &v1alpha1.GitSource{
		Remote: "https://git.example.com/web", Credentials: &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: name + "-git"}},
	}}
	definition := &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ApplicationDefinitionSpec{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: selector},
			Versions: []v1alpha1.ApplicationVersion{
				{Version: "2.0.0", Template: &v1alpha1.ApplicationTemplate{Source: helm}},
				{Version: "1.0.0", Template: &v1alpha1.ApplicationTemplate{Source: git}},
			},
		},
	}
	require.NoError(s.t, s.Create(s.t.Context(), definition))
	s.t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(s.t.Context()), definition) })
	return definition
}

// cluster creates a KubernetesCluster that no process connects to: copies for it are made on the hub.
func (s *suite) cluster(namespace, name string, labels map[string]string) *v1alpha1.KubernetesCluster {
	s.t.Helper()
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	require.NoError(s.t, s.Create(s.t.Context(), kc))
	s.t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(s.t.Context()), kc) })
	return kc
}

// K58, K60: the namespace of a KubernetesCluster has the Secrets of what is offered to it, and no others.
func TestNamespace_getsWhatItNeeds(t *testing.T) {
	s := newSuite(t, toNamespaces)
	berlin, paris := shared(t, "hub").Namespace(t), shared(t, "hub").Namespace(t)
	for _, name := range []string{"a-charts", "a-ca", "a-git", "b-charts", "unused"} {
		s.secret(s.system+name, "one", "helm")
	}
	s.secret(s.system+"b-git", "private", "")
	s.define(s.system+"a", map[string]string{"env": "prod"})
	kc := s.cluster(berlin, "prod", map[string]string{"env": "prod"})
	s.cluster(berlin, "prod-2", map[string]string{"env": "prod"})
	test := s.cluster(paris, "test", map[string]string{"env": "test"})
	s.cluster(s.system, "here", map[string]string{"env": "prod"})
	s.says(kc, metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: 3", berlin))
	s.says(test, metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: 0", paris))
	for _, name := range []string{"a-charts", "a-ca", "a-git"} {
		assert.Equal(t, "one", password(find(t, s, berlin, s.system+name)), name)
	}

	change(t, s, s.system, s.system+"a-git", func(secret *corev1.Secret) { secret.Data["password"] = []byte("two") })
	until(t, s, berlin, s.system+"a-git", "two")

	definition := s.define(s.system+"b", nil)
	until(t, s, paris, s.system+"b-charts", "one")
	until(t, s, berlin, s.system+"b-charts", "one")
	require.NoError(t, s.Delete(t.Context(), definition))
	until(t, s, paris, s.system+"b-charts", "")

	relabel(t, s, test, map[string]string{"env": "prod"})
	until(t, s, paris, s.system+"a-charts", "one")
	relabel(t, s, test, nil)
	until(t, s, paris, s.system+"a-charts", "")

	begun := &v1alpha1.ApplicationDefinition{}
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Name: s.system + "a"}, begun))
	before := test.DeepCopy()
	test.Status.Definitions = map[string]string{begun.Name: string(begun.UID)}
	require.NoError(t, s.Status().Patch(t.Context(), test, client.MergeFrom(before)))
	until(t, s, paris, s.system+"a-charts", "one")
	require.NoError(t, s.Delete(t.Context(), test))
	until(t, s, paris, s.system+"a-charts", "")
	assert.Nil(t, find(t, s, berlin, s.system+"unused"))
	assert.Nil(t, find(t, s, berlin, s.system+"b-git"))
}

func relabel(t *testing.T, c client.Client, kc *v1alpha1.KubernetesCluster, labels map[string]string) {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(kc), kc))
	before := kc.DeepCopy()
	kc.Labels = labels
	require.NoError(t, c.Patch(t.Context(), kc, client.MergeFrom(before)))
}

// K58, C60: who may edit Secrets of the namespace cannot keep a copy, change it, or have another Secret
// overwritten; what is in the way is named, and copied over as soon as it is gone.
func TestNamespace_ofATenant(t *testing.T) {
	s := newSuite(t, toNamespaces)
	ns := shared(t, "hub").Namespace(t)
	name := s.system + "-charts"
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string][]byte{"password": []byte("theirs")}}
	require.NoError(t, s.Create(t.Context(), theirs))
	s.define(s.system, nil)
	kc := s.cluster(ns, "prod", nil)
	s.secret(name, "ours", "helm")
	s.says(kc, metav1.ConditionFalse, v1alpha1.CopyFailedReason, fmt.Sprintf(
		"Secret %s/%s exists and is not a copy of Secret %s/%s of this hub: delete it, or rename the one of this hub", ns, name, s.system, name))
	assert.Equal(t, "theirs", password(find(t, s, ns, name)))
	require.NoError(t, s.Delete(t.Context(), theirs))
	until(t, s, ns, name, "ours")
	s.says(kc, metav1.ConditionTrue, v1alpha1.SucceededReason, fmt.Sprintf("Secrets that are copied to namespace %s: 1", ns))

	change(t, s, ns, name, func(secret *corev1.Secret) { secret.Data["password"] = []byte("edited") })
	until(t, s, ns, name, "ours")
	change(t, s, ns, name, func(secret *corev1.Secret) { secret.Annotations[v1alpha1.PruneAnnotation] = "disabled" })
	change(t, s, s.system, name, func(secret *corev1.Secret) { secret.Annotations = nil })
	until(t, s, ns, name, "")
	assert.Equal(t, "ours", password(find(t, s, s.system, name)))
}

// K58: nothing goes to namespaces unless the operator asks for it, and what is there goes when that is over.
func TestNamespace_onlyIfAskedFor(t *testing.T) {
	s := newSuite(t, toNamespaces)
	ns := shared(t, "hub").Namespace(t)
	name := s.system + "-charts"
	s.define(s.system, nil)
	s.secret(name, "one", "helm")
	kc := s.cluster(ns, "prod", nil)
	until(t, s, ns, name, "one")
	s.stop()
	s.toNamespaces = false
	s.start()
	until(t, s, ns, name, "")
	require.Eventually(t, func() bool {
		require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(kc), kc))
		return !conditions.Has(kc, v1alpha1.CredentialsCopiedCondition)
	}, limit, often)
	s.engage(s.newSeed("seed"), shared(t, "seed").RESTConfig())
	until(t, s.seed, s.system, name, "one")
	assert.Nil(t, find(t, s, ns, name))
}

// Others write the same list of conditions, and may bring an older one back: ours is written again.
func TestCondition_isWrittenAgain(t *testing.T) {
	s := newSuite(t, toNamespaces)
	ns := shared(t, "hub").Namespace(t)
	kc := s.cluster(ns, "prod", nil)
	message := fmt.Sprintf("Secrets that are copied to namespace %s: 0", ns)
	s.says(kc, metav1.ConditionTrue, v1alpha1.SucceededReason, message)
	require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(kc), kc))
	before := kc.DeepCopy()
	kc.Status.Conditions = nil
	conditions.MarkTrue(kc, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "ok")
	require.NoError(t, s.Status().Patch(t.Context(), kc, client.MergeFrom(before)))
	s.says(kc, metav1.ConditionTrue, v1alpha1.SucceededReason, message)
	require.NoError(t, s.Get(t.Context(), client.ObjectKeyFromObject(kc), kc))
	assert.True(t, conditions.IsReady(kc), "that of others stays")
}
