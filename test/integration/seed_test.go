package integration_test

import (
	"context"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
	"waybill.dev/waybill/test/program"
)

// chain is a hub, a seed that drives a user cluster, and that cluster: three API servers.
type chain struct {
	t               *testing.T
	hub, seed, user client.Client
	clusters        []*env.Cluster
	bin, name       string
	inst            *v1alpha1.ApplicationInstallation
	// ends ends the processes, after everything that they release is gone.
	ends []func()
}

func newChain(t *testing.T) *chain {
	t.Helper()
	two := hubAndUser(t)
	c := &chain{t: t, clusters: []*env.Cluster{two[0], env.Shared(t, env.Options{Name: "examples", CRDs: []string{"../../charts/waybill/crds"}}), two[1]}}
	for i, of := range []*client.Client{&c.hub, &c.seed, &c.user} {
		made, err := client.New(c.clusters[i].RESTConfig(), client.Options{Scheme: hub.NewScheme(t)})
		require.NoError(t, err)
		*of = made
		if i < 2 {
			system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultSystemNamespace}}
			require.NoError(t, client.IgnoreAlreadyExists(made.Create(t.Context(), system)))
		}
	}
	c.name = c.clusters[2].Namespace(t)
	t.Cleanup(func() {
		for _, end := range c.ends {
			end()
		}
	})
	var err error
	c.bin, err = program.Build(t.Context(), program.Sync)
	require.NoError(t, err)
	return c
}

// run runs waybill-sync beside one of the clusters, and returns what ends it.
func (c *chain) run(at int, controllers string) (end func()) {
	c.t.Helper()
	process, err := program.Start(c.t.Context(), program.Options{
		Name: program.Sync, Bin: c.bin, Kubeconfig: c.clusters[at].KubeconfigFile(),
		Args: []string{"--controllers=" + controllers, "--cache-dir=" + c.t.TempDir()},
	})
	require.NoError(c.t, err)
	ended := false
	end = func() {
		if !ended {
			ended = true
			if log, err := process.Log(); c.t.Failed() && err == nil {
				c.t.Log(c.clusters[at].Name() + ":\n" + program.Tail(log, 30))
			}
			require.NoError(c.t, process.Kill())
		}
	}
	c.ends = append(c.ends, end)
	return end
}

// create creates an object, which is gone before the processes are.
func (c *chain) create(in client.Client, o client.Object) {
	c.t.Helper()
	require.NoError(c.t, in.Create(c.t.Context(), o))
	c.t.Cleanup(func() {
		background := context.WithoutCancel(c.t.Context())
		require.NoError(c.t, client.IgnoreNotFound(in.Delete(background, o)))
		require.Eventually(c.t, func() bool { return apierrors.IsNotFound(in.Get(background, client.ObjectKeyFromObject(o), o)) }, limit, often)
	})
}

// register registers a cluster with another one.
func (c *chain) register(in client.Client, at int, role v1alpha1.ClusterRole) *v1alpha1.KubernetesCluster {
	c.t.Helper()
	c.create(in, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultSystemNamespace, Name: c.name + "-kubeconfig"},
		Data:       map[string][]byte{"value": c.clusters[at].Kubeconfig()},
	})
	kc := &v1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultSystemNamespace, Name: c.name},
		Spec:       v1alpha1.KubernetesClusterSpec{Role: role, KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: c.name + "-kubeconfig"}},
	}
	c.create(in, kc)
	return kc
}

// edit changes the original.
func (c *chain) edit(change func(*corev1.Secret)) {
	c.t.Helper()
	secret := &corev1.Secret{}
	require.NoError(c.t, c.hub.Get(c.t.Context(), c.key(), secret))
	before := secret.DeepCopy()
	change(secret)
	require.NoError(c.t, c.hub.Patch(c.t.Context(), secret, client.MergeFrom(before)))
}

func (c *chain) key() types.NamespacedName {
	return types.NamespacedName{Namespace: v1alpha1.DefaultSystemNamespace, Name: c.name}
}

// want has the installation install a version.
func (c *chain) want(version string) {
	c.t.Helper()
	require.NoError(c.t, c.user.Get(c.t.Context(), client.ObjectKeyFromObject(c.inst), c.inst))
	before := c.inst.DeepCopy()
	c.inst.Spec.ApplicationRef.Version = version
	require.NoError(c.t, c.user.Patch(c.t.Context(), c.inst, client.MergeFrom(before)))
}

// await waits until Ready of the installation has a reason, while what is installed has a version.
func (c *chain) await(reason, version string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		require.NoError(c.t, c.user.Get(c.t.Context(), client.ObjectKeyFromObject(c.inst), c.inst))
		return c.inst.Status.ObservedGeneration == c.inst.Generation && conditions.GetReason(c.inst, v1alpha1.ReadyCondition) == reason
	}, limit, often, "Ready never has the reason %s: %+v", reason, &c.inst.Status)
	installed := &corev1.ConfigMap{}
	require.NoError(c.t, c.user.Get(c.t.Context(), client.ObjectKey{Namespace: c.name, Name: "installed"}, installed))
	assert.Equal(c.t, version, installed.Data["version"])
}

// K43, K45, K57, K60: a seed installs into its user cluster with credentials that come from the hub, follows
// their rotation and removal, and goes on without the hub.
func TestSeed_installsWithCredentialsOfTheHub(t *testing.T) {
	c := newChain(t)
	endHub := c.run(0, "sourcecredential,kubernetescluster")
	c.run(1, "driver")
	definition, credentials := privateApplication(t, c.name)
	c.create(c.hub, credentials)
	c.create(c.seed, definition) // as the hub copies it
	c.register(c.hub, 1, v1alpha1.ClusterRoleSeed)
	c.register(c.seed, 2, v1alpha1.ClusterRoleUser)
	c.inst = &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.name, Name: "private"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: c.name, Version: "1.0.0"}},
	}
	require.Eventually(t, func() bool { return c.user.Create(t.Context(), c.inst.DeepCopy()) == nil }, limit, often, "the seed brings the CRDs")
	t.Cleanup(func() {
		background := context.WithoutCancel(t.Context())
		require.NoError(t, client.IgnoreNotFound(c.user.Delete(background, c.inst)))
		require.Eventually(t, func() bool {
			return apierrors.IsNotFound(c.user.Get(background, client.ObjectKeyFromObject(c.inst), c.inst))
		}, limit, often)
	})
	c.await(v1alpha1.SucceededReason, "1.0.0")

	c.edit(func(s *corev1.Secret) { s.Data["password"] = []byte("expired") })
	require.Eventually(t, func() bool {
		copied := &corev1.Secret{}
		return c.seed.Get(t.Context(), c.key(), copied) == nil && string(copied.Data["password"]) == "expired"
	}, limit, often)
	c.want("2.0.0")
	c.await(v1alpha1.SourceAuthenticationFailedReason, "1.0.0")
	c.edit(func(s *corev1.Secret) { s.Data["password"] = []byte("secret-word") })
	c.await(v1alpha1.SucceededReason, "2.0.0")

	c.edit(func(s *corev1.Secret) { s.Annotations = nil })
	c.want("1.0.0")
	c.await(v1alpha1.SecretNotFoundReason, "2.0.0")
	c.edit(func(s *corev1.Secret) { s.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "helm"} })
	c.await(v1alpha1.SucceededReason, "1.0.0")

	endHub()
	c.edit(func(s *corev1.Secret) { s.Annotations = nil })
	installed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.name, Name: "installed"}}
	require.NoError(t, c.user.Delete(t.Context(), installed.DeepCopy()))
	require.Eventually(t, func() bool { return c.user.Get(t.Context(), client.ObjectKeyFromObject(installed), installed) == nil }, limit, often, "the seed keeps what is installed")
	require.NoError(t, c.seed.Get(t.Context(), c.key(), &corev1.Secret{}), "what it has it keeps while there is no hub")
	c.run(0, "sourcecredential,kubernetescluster")
	require.Eventually(t, func() bool { return apierrors.IsNotFound(c.seed.Get(t.Context(), c.key(), &corev1.Secret{})) }, limit, often)
}
