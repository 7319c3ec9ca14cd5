package webhooks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/webhooks"
	"waybill.dev/waybill/webhooks/registration"
)

// lifecycle is a cluster for tests that start and stop servers, one after the other.
func lifecycle(t *testing.T) *cluster {
	t.Helper()
	return &cluster{Cluster: env.Shared(t, env.Options{Name: "lifecycle", CRDs: []string{crds}, Audit: true})}
}

func configurations(t *testing.T, c client.Client) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	key := client.ObjectKey{Name: registration.ConfigurationName}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	require.NoError(t, c.Get(t.Context(), key, mutating))
	require.NoError(t, c.Get(t.Context(), key, validating))
	return mutating, validating
}

func unregister(o *webhooks.Options) { o.Registration.Unregister = true }

// breakTheRules writes an object that only the webhook refuses, as a dry run.
func breakTheRules(t *testing.T, c client.Client, namespace string) error {
	t.Helper()
	app := newApplication(namespace)
	app.Spec.Dependencies = []string{app.Name}
	return c.Create(t.Context(), app, client.DryRunAll)
}

// C32, C49, C51: a server that is ready answers, and says so to the API server in full.
func TestServer_registersItself(t *testing.T) {
	c := lifecycle(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	require.NoError(t, breakTheRules(t, admin, ns), "nothing is registered")
	const name = "webhook"
	config, err := c.AddUser(name, "system:masters")
	require.NoError(t, err)
	s := serve(t, config, unregister)
	s.awaitReady(t)
	require.Eventually(t, func() bool { return apierrors.IsInvalid(breakTheRules(t, admin, ns)) }, patience, 10*time.Millisecond, "API servers learn of it a moment later")

	mutating, validating := configurations(t, admin)
	require.Len(t, mutating.Webhooks, len(webhooks.Hooks().Mutating), "and nothing is injected, as there are no Applications")
	require.Len(t, validating.Webhooks, len(webhooks.Hooks().Validating))
	for _, w := range validating.Webhooks {
		policy := admissionregistrationv1.Fail
		if strings.HasPrefix(w.Name, "advise.") {
			policy = admissionregistrationv1.Ignore // it refuses nothing
		}
		assert.Equal(t, policy, *w.FailurePolicy, w.Name)
		assert.Equal(t, admissionregistrationv1.SideEffectClassNone, *w.SideEffects, w.Name)
		assert.NotEmpty(t, w.MatchConditions, w.Name)
		assert.Contains(t, *w.ClientConfig.URL, s.url)
		for _, r := range w.Rules {
			assert.NotContains(t, r.Resources[0], "/", "no subresource: status and scale pass")
		}
	}
	writes := c.writesWhile(t, name, func() { assertRepaired(t, admin, validating) })
	assert.Equal(t, []string{"update validatingwebhookconfigurations"}, writes, "what is as it should be is left alone")

	s.end(t)
	err = admin.Get(t.Context(), client.ObjectKeyFromObject(validating), validating)
	require.True(t, apierrors.IsNotFound(err), "it was asked to unregister: %v", err)
	require.Eventually(t, func() bool { return breakTheRules(t, admin, ns) == nil }, patience, 10*time.Millisecond, "the webhook is not called any more")
}

// assertRepaired: what is not as it should be is corrected.
func assertRepaired(t *testing.T, admin client.Client, validating *admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	broken := validating.DeepCopy()
	broken.Webhooks = broken.Webhooks[1:]
	require.NoError(t, admin.Update(t.Context(), broken))
	require.Eventually(t, func() bool {
		_, now := configurations(t, admin)
		return len(now.Webhooks) == len(validating.Webhooks)
	}, patience, 10*time.Millisecond)
}

// writesWhile are the writes of a user while something is done, but for its Lease. One that was
// refused, as the object had changed, is not counted: it comes again if there is still a need.
func (c *cluster) writesWhile(t *testing.T, user string, do func()) []string {
	t.Helper()
	mark, err := c.AuditMark(t.Context())
	require.NoError(t, err)
	do()
	requests, err := c.Requests(t.Context(), mark, env.ByUser(user), env.Writes, env.Accepted)
	require.NoError(t, err)
	var writes []string
	for _, r := range requests {
		if r.Resource != "leases" {
			writes = append(writes, r.Verb+" "+r.Resource)
		}
	}
	return writes
}

// C9, C49, P2: a server that is gone blocks what it should have looked at, and nothing else; CEL
// holds either way.
func TestServer_thatIsGone(t *testing.T) {
	c := lifecycle(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	app, going := newApplication(ns), newGitSync(ns)
	going.Finalizers = []string{"example.com/hold"}
	require.NoError(t, admin.Create(t.Context(), app))
	require.NoError(t, admin.Create(t.Context(), going))
	s := serve(t, c.RESTConfig(), nil)
	s.awaitReady(t)
	s.end(t)
	t.Cleanup(func() { withdraw(t, admin) })

	require.Eventually(t, func() bool {
		edited := app.DeepCopy()
		edited.Spec.Type = "Blog"
		return apierrors.IsInternalError(admin.Update(t.Context(), edited, client.DryRunAll))
	}, patience, 10*time.Millisecond, "failurePolicy Fail")
	app.Status.Ready = "True"
	require.NoError(t, admin.Status().Update(t.Context(), app), "a status")
	require.NoError(t, admin.Delete(t.Context(), going), "a deletion")
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(going), going))
	going.Finalizers = nil
	require.NoError(t, admin.Update(t.Context(), going), "a finalizer of what is being deleted")

	withdraw(t, admin)
	require.Eventually(t, func() bool {
		edited := app.DeepCopy()
		edited.Spec.Selector.MatchLabels["app"] = "other"
		return apierrors.IsInvalid(admin.Update(t.Context(), edited, client.DryRunAll))
	}, patience, 10*time.Millisecond, "the schema keeps the selector, once the webhook is not called")
}

// withdraw deletes the configurations, as helm uninstall does.
func withdraw(t *testing.T, admin client.Client) {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	mutating.Name, validating.Name = registration.ConfigurationName, registration.ConfigurationName
	_ = admin.Delete(afterwards(t), mutating)
	_ = admin.Delete(afterwards(t), validating)
}

// A process that starts again at the same address goes on with the certificate authority that is there.
func TestServer_startsAgain(t *testing.T) {
	c := lifecycle(t)
	admin, _ := c.admin(t)
	first := serve(t, c.RESTConfig(), nil)
	first.awaitReady(t)
	t.Cleanup(func() { withdraw(t, admin) })
	before := authority(t, admin)
	first.end(t)
	second := serve(t, c.RESTConfig(), unregister)
	second.awaitReady(t)
	assert.Equal(t, before, authority(t, admin))
}

// authority is the certificate of the authority in the Secret.
func authority(t *testing.T, admin client.Client) string {
	t.Helper()
	secret := &corev1.Secret{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.DefaultSystemNamespace, Name: registration.SecretName}, secret))
	return string(secret.Data["ca.crt"])
}

// A cluster that does not know our kinds yet is waited for; until then no configuration is registered.
func TestServer_waitsForItsKinds(t *testing.T) {
	c := env.Start(t, env.Options{Name: "kindless"})
	s := serve(t, c.RESTConfig(), unregister)
	require.Eventually(t, func() bool {
		err := s.ready(t.Context())
		return err != nil && strings.Contains(err.Error(), "[+]registration ok") && strings.Contains(err.Error(), "[-]definitions failed")
	}, patience, 20*time.Millisecond, "registered, and cannot look definitions up")
	require.NoError(t, c.InstallCRDs(t.Context(), crds))
	s.awaitReady(t)
}
