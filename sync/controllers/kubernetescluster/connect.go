package kubernetescluster

import (
	"context"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/reconcile"
)

// localHash stands for the kubeconfig that the local cluster does not need.
const localHash = "local"

// connect engages the cluster in the registry with the kubeconfig of the Secret, or as the local
// cluster if there is none. A kubeconfig that cannot be used ends an engagement with an older one,
// because its credentials were revoked. One that is deleted together with the KubernetesCluster
// does not: it is needed to the end.
func (r *Reconciler) connect(ctx context.Context, s *scope) error {
	if err := r.mayBeSeed(s); err != nil {
		return err
	}
	found, err := r.kubeconfig(ctx, s)
	if reconcile.ReasonOf(err) == v1alpha1.SecretNotFoundReason && r.engaged(s.key) {
		ending, failed := r.ending(ctx, s)
		if failed != nil || ending {
			return failed
		}
	}
	if err != nil {
		if reconcile.IsStalled(err) {
			r.Clusters.Withhold(s.key, err)
			s.unknown(v1alpha1.InvalidKubeconfigReason, noKubeconfigMessage)
		}
		return err
	}
	r.Clusters.Ensure(s.key, found.hash, found.config)
	return nil
}

// mayBeSeed refuses a seed outside the system namespace. A seed gets the whole catalog and its
// credentials, and users who may change Secrets of its namespace may send them to another API
// server.
func (r *Reconciler) mayBeSeed(s *scope) error {
	if !s.kc.IsSeed() || s.kc.Namespace == r.SystemNamespace {
		return nil
	}
	err := reconcile.Stalled(v1alpha1.InvalidSpecReason,
		"spec.role is Seed, which is allowed in namespace %s only: delete it, and create it there", r.SystemNamespace)
	r.Clusters.Withhold(s.key, err)
	s.unknown(v1alpha1.InvalidSpecReason, notSeedMessage)
	return err
}

// engaged reports whether the registry has engaged the cluster, with an earlier kubeconfig.
func (r *Reconciler) engaged(key types.NamespacedName) bool {
	state, _ := r.Clusters.State(key)
	return state.Engaged
}

// ending reports whether the KubernetesCluster or its namespace is being deleted. The contents of a
// namespace are deleted in any order: the Secret may go first, and its kubeconfig is needed until
// everything is removed from the cluster.
func (r *Reconciler) ending(ctx context.Context, s *scope) (bool, error) {
	if !s.kc.DeletionTimestamp.IsZero() {
		return true, nil
	}
	namespace := &corev1.Namespace{}
	if err := r.Clusters.Local().Client().Get(ctx, types.NamespacedName{Name: s.kc.Namespace}, namespace); err != nil {
		return false, fmt.Errorf("get namespace %s: %w", s.kc.Namespace, err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}

// kubeconfig reads the kubeconfig, which is parsed once per content. The result has no config for
// the local cluster.
func (r *Reconciler) kubeconfig(ctx context.Context, s *scope) (kubeconfig, error) {
	ref := s.kc.Spec.KubeconfigSecretRef
	if ref == nil {
		return kubeconfig{hash: localHash}, r.mayBeLocal(s)
	}
	name := types.NamespacedName{Namespace: s.kc.Namespace, Name: ref.Name}
	secret, err := r.Secrets.Get(ctx, content.Secret, name)
	if apierrors.IsNotFound(err) {
		return kubeconfig{}, reconcile.Stalled(v1alpha1.SecretNotFoundReason, "Secret %s does not exist: create it, with a kubeconfig in it", name)
	}
	if err != nil {
		return kubeconfig{}, fmt.Errorf("read kubeconfig: %w", err)
	}
	data, key := ref.Find(secret.Data)
	if data == nil {
		return kubeconfig{}, reconcile.Stalled(v1alpha1.InvalidSecretReason, "Secret %s has no key %q", name, key)
	}
	found, err := r.kubeconfigs.of(s.key, data, r.Kubeconfigs)
	if err != nil {
		return kubeconfig{}, reconcile.Stalled(v1alpha1.InvalidKubeconfigReason, "key %q of Secret %s: %w", key, name, err)
	}
	return found, nil
}

// mayBeLocal refuses to treat a KubernetesCluster that is being deleted as the local cluster if it
// was another one, or none: by removing its kubeconfig, a user could redirect what is delivered to
// it into this cluster, with Waybill's own rights. Admission is the first to refuse that.
func (r *Reconciler) mayBeLocal(s *scope) error {
	if r.RemoteOnly {
		return reconcile.Stalled(v1alpha1.InvalidKubeconfigReason,
			"clusters of namespace %s are driven with rights in that namespace alone, so nothing can be installed in the hub itself: set spec.kubeconfigSecretRef", s.kc.Namespace)
	}
	if s.kc.DeletionTimestamp.IsZero() {
		return nil
	}
	if r.claims.bound(s.kc) == r.Clusters.Local().UID() {
		return nil
	}
	return reconcile.Stalled(v1alpha1.InvalidKubeconfigReason,
		"it is being deleted, and spec.kubeconfigSecretRef was removed: restore it")
}

// kubeconfig is a parsed kubeconfig; config is nil for the local cluster.
type kubeconfig struct {
	hash   string
	config *rest.Config
	err    error
}

// kubeconfigs caches parsed kubeconfigs.
type kubeconfigs struct {
	byKey keyed.Map[types.NamespacedName, kubeconfig]
}

// of returns the parsed kubeconfig, and parses it if it is not cached. Its hash is that of the
// kubeconfig alone: what else is in its Secret may change without a loss of the connection.
func (k *kubeconfigs) of(key types.NamespacedName, data []byte, o cluster.KubeconfigOptions) (kubeconfig, error) {
	hash := fmt.Sprintf("%x", sha256.Sum256(data))
	if found, ok := k.byKey.Lookup(key); ok && found.hash == hash {
		return found, found.err
	}
	config, err := cluster.ParseKubeconfig(data, o)
	parsed := kubeconfig{hash: hash, config: config, err: err}
	k.byKey.Put(key, parsed)
	return parsed, err
}

// hash returns the hash of the kubeconfig that was parsed last; empty without one.
func (k *kubeconfigs) hash(key types.NamespacedName) string { return k.byKey.Get(key).hash }

func (k *kubeconfigs) forget(key types.NamespacedName) { k.byKey.Drop(key) }
