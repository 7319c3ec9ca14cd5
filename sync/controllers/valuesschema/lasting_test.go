package valuesschema_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/valuesschema"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// K48, K59: a chart that was refused is asked for again as soon as its credentials are corrected, however long the back-off
// would last.
func TestSchemas_ofCorrectedCredentials(t *testing.T) {
	w := newWorld(t)
	repo, err := env.StartHelmRepo(env.Access{Username: "waybill", Password: "right", TLS: true})
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	push(t, repo, "1.0.0", nil)
	p := start(w, patient)
	t.Cleanup(p.Stop)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: hub.SystemNamespace, Name: w.Namespace, Annotations: map[string]string{v1alpha1.SecretTypeAnnotation: "helm"},
		},
		StringData: map[string]string{"username": "waybill", "password": "wrong", "ca.crt": string(hub.Authority(t))},
	}
	w.Create(secret)
	d := definition(w.Namespace, repo, "1.0.0")
	from := d.Spec.Versions[0].Template.Source.Helm
	from.Credentials = &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: secret.Name}}
	from.CASecretRef = &v1alpha1.LocalReference{Name: secret.Name}
	w.Create(d)
	require.True(t, w.Eventually(func() bool { return len(repo.Requests()) > 0 }), "it is asked for")
	hub.Change(w, secret, func(s *corev1.Secret) { s.StringData = map[string]string{"password": "right"} })
	await(w, d, 1)
}

// hanging has the charts of one repository never come.
type hanging struct {
	valuesschema.Charts
	url          string
	asked, ended chan struct{}
}

func (h hanging) Get(ctx context.Context, ref chart.Reference, cred chart.Credentials) (*chart.Chart, error) {
	if ref.URL != h.url {
		return h.Charts.Get(ctx, ref, cred)
	}
	h.asked <- struct{}{}
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.Canceled) { // and not for the time that it has taken
		h.ended <- struct{}{}
	}
	return nil, ctx.Err()
}

// What is under way for a version that leaves its definition, or goes with it, ends.
func TestSchemas_areNotAskedForInVain(t *testing.T) {
	w := newWorld(t)
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	push(t, repo, "2.0.0", nil)
	h := hanging{url: "https://charts.example.com", asked: make(chan struct{}, 9), ended: make(chan struct{}, 9)}
	p := start(w, patient, func(r *valuesschema.Reconciler) {
		h.Charts = r.Charts
		r.Charts = h
	})
	t.Cleanup(p.Stop)
	happens := func(event chan struct{}, what string) {
		t.Helper()
		require.True(t, w.Eventually(func() bool { return len(event) > 0 }), what)
		<-event
	}
	never := func(name string) *v1alpha1.ApplicationDefinition {
		d := definition(name, repo, "1.0.0")
		d.Spec.Versions[0].Template.Source.Helm.URL = h.url
		return d
	}

	d := never(w.Namespace)
	d.Spec.Versions = append(d.Spec.Versions, definition("", repo, "2.0.0").Spec.Versions...)
	w.Create(d)
	happens(h.asked, "it is asked for")
	hub.Change(w, d, func(d *v1alpha1.ApplicationDefinition) { d.Spec.Versions = d.Spec.Versions[1:] })
	happens(h.ended, "the version is gone")
	await(w, d, 1)

	another := never(w.Namespace + "-another")
	w.Create(another)
	happens(h.asked, "it is asked for")
	require.NoError(t, w.Client.Delete(t.Context(), another))
	happens(h.ended, "the definition is gone")
}
