package registration

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/webhooks/certificate"
)

// keyring returns the shared keyring, and creates or rotates it when that is due. If that fails, it
// also returns the last one that was shared, unless that has expired: what does not need a new
// authority can go on with it.
func (r *Registrar) keyring(ctx context.Context, now time.Time) (certificate.Keyring, error) {
	keyring, err := r.shared(ctx, now)
	if err == nil {
		r.kept = keyring
	} else if r.kept.Current != nil && now.Before(r.kept.Current.NotAfter()) {
		return r.kept, err
	}
	return keyring, err
}

// shared returns the keyring of the Secret, up to date. The first process to write wins; the others
// get a conflict, and read what it wrote.
func (r *Registrar) shared(ctx context.Context, now time.Time) (certificate.Keyring, error) {
	secret, err := r.secret(ctx)
	if err != nil {
		return certificate.Keyring{}, err
	}
	keyring, err := certificate.Decode(secret.Data)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the certificate authority cannot be used and is replaced", "secret", SecretName)
	}
	if now.Before(keyring.RotateAt()) {
		return keyring, nil
	}
	if keyring, err = keyring.Rotate(now, r.options.Validity); err != nil {
		return certificate.Keyring{}, err
	}
	if secret.Data, err = keyring.Encode(); err != nil {
		return certificate.Keyring{}, err
	}
	if err := r.store(ctx, secret); err != nil {
		return certificate.Keyring{}, err
	}
	ctrl.LoggerFrom(ctx).Info("made a new certificate authority", "notAfter", keyring.Current.NotAfter())
	return keyring, nil
}

// secret returns the Secret, or one without a resourceVersion if it does not exist.
func (r *Registrar) secret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: r.options.Namespace, Name: SecretName}
	err := r.client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, secret) // the cache may be behind what another process just wrote
	}
	if apierrors.IsNotFound(err) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: labels()}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get secret %s: %w", key, err)
	}
	return secret, nil
}

func (r *Registrar) store(ctx context.Context, secret *corev1.Secret) error {
	if secret.ResourceVersion != "" {
		if err := r.client.Update(ctx, secret); err != nil {
			return fmt.Errorf("update secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		return nil
	}
	if r.options.Endpoint.ByURL() {
		if err := r.ensureNamespace(ctx); err != nil {
			return err
		}
	}
	if err := r.client.Create(ctx, secret); err != nil {
		return fmt.Errorf("create secret %s/%s: %w", secret.Namespace, secret.Name, madeByChart(err))
	}
	return nil
}

// madeByChart adds the way out to an error of a creation that only a chart has the right to.
func madeByChart(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w: the chart creates it: run `helm upgrade` to create it again", err)
}

// ensureNamespace creates the system namespace: outside a cluster there is no chart to create it.
func (r *Registrar) ensureNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.options.Namespace}}
	if err := r.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	return nil
}

func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "waybill", "app.kubernetes.io/component": "webhook"}
}

// serve issues a new certificate for this process if the current one is due for renewal, or if its
// authority is no longer the one to sign with.
func (r *Registrar) serve(now time.Time, keyring certificate.Keyring) error {
	leaf := r.options.Holder.Get()
	signer := r.signer(now, keyring, leaf)
	if leaf.IssuedBy(signer) && now.Before(leaf.RenewAt) {
		return nil
	}
	next, err := signer.Issue(now, r.options.Endpoint.Hosts()...)
	if err != nil {
		return fmt.Errorf("issue serving certificate: %w", err)
	}
	r.options.Holder.Set(next)
	certificateExpiry.Set(float64(next.NotAfter().Unix()))
	if leaf != nil && !leaf.IssuedBy(signer) {
		// Others may be signing with it a little longer than we do.
		r.retired[leaf.Issuer] = now.Add(10 * r.options.Settle)
	}
	return nil
}

// signer returns the current authority once all API servers trust it, and until then one that they
// already trust.
func (r *Registrar) signer(now time.Time, keyring certificate.Keyring, leaf *certificate.Leaf) *certificate.Authority {
	settled := !now.Before(r.trust.settles(keyring.Current, r.options.Settle))
	switch {
	case settled || leaf.IssuedBy(keyring.Current):
		return keyring.Current
	case leaf != nil && now.Before(leaf.Issuer.NotAfter()):
		return leaf.Issuer
	case keyring.Previous != nil && now.Before(keyring.Previous.NotAfter()):
		return keyring.Previous
	}
	return keyring.Current
}

// further returns the authorities outside the keyring that certificates may still be signed with.
func (r *Registrar) further(now time.Time) []*certificate.Authority {
	var authorities []*certificate.Authority
	if leaf := r.options.Holder.Get(); leaf != nil {
		authorities = append(authorities, leaf.Issuer)
	}
	for authority, until := range r.retired {
		if now.After(until) {
			delete(r.retired, authority)
			continue
		}
		authorities = append(authorities, authority)
	}
	return authorities
}
