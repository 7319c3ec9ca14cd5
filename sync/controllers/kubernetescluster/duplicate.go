package kubernetescluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
)

// A KubernetesCluster is bound to the cluster that it leads to at the first contact, by the UID that
// the cluster reports, and is used for no other. An API server may report the UID of any cluster, so
// that equal UIDs alone mean nothing: two KubernetesClusters lead to one cluster if that is proved, and
// otherwise neither keeps the other from anything. It cannot be determined which of them reports a
// false UID.
//
// Several KubernetesClusters may lead to one cluster, for teams that deliver to it from their own
// namespaces and with their own rights. The first of them drives it: it brings CRDs and copies of
// definitions, and its installations are installed. The others can be delivered to, and no more. One
// in the system namespace precedes all others, so that no team takes a cluster from those who run
// Waybill; otherwise the one comes first that was bound first.

// refusal keeps a KubernetesCluster from being used at all.
type refusal struct {
	reason, message string
	// unproved is what is to be proved first; empty if that would change nothing.
	unproved []*unproved
}

func (e *refusal) Error() string { return e.message }

// Is makes the registry refuse the cluster.
func (e *refusal) Is(target error) bool { return target == cluster.ErrRefused }

// refusalOf returns the refusal that is why a cluster is not engaged; nil if there is none.
func refusalOf(err error) *refusal {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}

// yieldError keeps a KubernetesCluster from driving its cluster.
type yieldError struct {
	first types.NamespacedName
}

func (e *yieldError) Error() string {
	return fmt.Sprintf("KubernetesCluster %s leads to the same cluster and comes first", e.first)
}

// guard is the Guard of the registry: it binds a KubernetesCluster to the cluster with that UID, or
// returns a refusal. It returns another error if it must not drive the cluster.
func (r *Reconciler) guard(key types.NamespacedName, uid string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	kc := &v1alpha1.KubernetesCluster{}
	if err := r.Client.Get(ctx, key, kc); err != nil {
		return &refusal{reason: v1alpha1.ProgressingReason, message: err.Error()}
	}
	store, err := r.decide(ctx, kc, uid)
	if refusalOf(err) != nil {
		return err
	}
	if claimed, ok := r.claims.get(kc); !ok || claimed.uid != uid || claimed.store != store {
		r.claims.put(kc, uid, store)
	}
	if err != nil {
		return err
	}
	for _, other := range r.claims.of(uid) {
		if state, ok := r.Clusters.State(other); ok && other != key && state.Engaged && state.Yields == nil {
			r.Clusters.Probe(other) // it comes after us, but does not know about us yet
		}
	}
	return nil
}

// decide returns which of the clusters with that UID a KubernetesCluster leads to, and why it must not be
// used for that, which is a refusal, or must not drive it; nil if it may. It changes nothing.
func (r *Reconciler) decide(ctx context.Context, kc *v1alpha1.KubernetesCluster, uid string) (store string, err error) {
	bound := r.claims.bound(kc)
	if bound != "" && bound != uid && kc.Annotations[v1alpha1.AcceptClusterUIDAnnotation] != uid {
		return "", &refusal{reason: v1alpha1.ClusterChangedReason, message: fmt.Sprintf(
			"the kubeconfig leads to the cluster with UID %s, but this KubernetesCluster is bound to the one with UID %s, and nothing is done in either: "+
				"restore the kubeconfig; or, if the change is intended, set the annotation %s to the new UID",
			uid, bound, v1alpha1.AcceptClusterUIDAnnotation)}
	}
	others, err := r.sameUID(ctx, kc, uid)
	if err != nil {
		return "", &refusal{reason: v1alpha1.ProgressingReason, message: err.Error()}
	}
	if store, err = r.storeOf(kc, uid, others); err != nil {
		return "", err
	}
	if incumbent := r.firstOf(r.inStore(others, store), uid); incumbent != nil && r.precedes(incumbent, kc, uid) {
		return store, &yieldError{first: client.ObjectKeyFromObject(incumbent)}
	}
	return store, nil
}

// recheck makes the registry call guard again if it would decide otherwise than the last time: because
// another KubernetesCluster of the same cluster has come or gone since, or something was proved or
// accepted.
func (r *Reconciler) recheck(ctx context.Context, s *scope) error {
	refused := refusalOf(s.state.Err)
	if s.state.UID == "" || s.state.Err != nil && refused == nil {
		return nil
	}
	was := s.state.Yields
	if refused != nil {
		was = refused
	}
	store, is := r.decide(ctx, s.kc, s.state.UID)
	if _, known := r.claims.boundTo(s.kc); otherwise(is, was) || refusalOf(is) == nil && store != known {
		r.Clusters.Probe(s.key)
	}
	return nil
}

// otherwise reports whether one decision differs from another. The same words can be about other claims, as
// when a kubeconfig was read or a reconciliation requested in between: what was proved of the former says
// nothing of the latter.
func otherwise(is, was error) bool {
	return text(is) != text(was) || !slices.EqualFunc(unprovedOf(is), unprovedOf(was), func(a, b *unproved) bool { return a.input == b.input })
}

// unprovedOf returns the claims that a decision waits for.
func unprovedOf(err error) []*unproved {
	if refused := refusalOf(err); refused != nil {
		return refused.unproved
	}
	return nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// readTimeout bounds a read from a cache that is synced.
const readTimeout = 10 * time.Second

// firstOf returns the KubernetesCluster that precedes all others of a cluster; nil if there are none.
func (r *Reconciler) firstOf(all []*v1alpha1.KubernetesCluster, uid string) *v1alpha1.KubernetesCluster {
	var first *v1alpha1.KubernetesCluster
	for _, kc := range all {
		if first == nil || r.precedes(kc, first, uid) {
			first = kc
		}
	}
	return first
}

// sameCluster returns the other KubernetesClusters that lead to the cluster of a UID that a
// KubernetesCluster is bound to.
func (r *Reconciler) sameCluster(ctx context.Context, kc *v1alpha1.KubernetesCluster, uid string) ([]*v1alpha1.KubernetesCluster, error) {
	others, err := r.sameUID(ctx, kc, uid)
	_, store := r.claims.boundTo(kc)
	return r.inStore(others, store), err
}

// sameUID returns the other KubernetesClusters that are bound to a cluster of a UID, according to their
// status, which other processes write as well, or to what this process has decided.
func (r *Reconciler) sameUID(ctx context.Context, kc *v1alpha1.KubernetesCluster, uid string) ([]*v1alpha1.KubernetesCluster, error) {
	if uid == "" {
		return nil, nil
	}
	listed := &v1alpha1.KubernetesClusterList{}
	if err := r.Client.List(ctx, listed, client.MatchingFields{uidIndex: uid}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters of UID %s: %w", uid, err)
	}
	var others []*v1alpha1.KubernetesCluster
	seen := map[types.NamespacedName]bool{client.ObjectKeyFromObject(kc): true}
	add := func(other *v1alpha1.KubernetesCluster) {
		key := client.ObjectKeyFromObject(other)
		if !seen[key] && r.claims.bound(other) == uid { // else its status is behind
			seen[key] = true
			others = append(others, other)
		}
	}
	for i := range listed.Items {
		add(&listed.Items[i])
	}
	for _, key := range r.claims.of(uid) {
		other := &v1alpha1.KubernetesCluster{}
		if !seen[key] && r.Client.Get(ctx, key, other) == nil {
			add(other)
		}
	}
	return others, nil
}

// precedes reports whether a drives the cluster with that UID rather than b.
func (r *Reconciler) precedes(a, b *v1alpha1.KubernetesCluster, uid string) bool {
	if platform := a.Namespace == r.SystemNamespace; platform != (b.Namespace == r.SystemNamespace) {
		return platform
	}
	first, second := r.claims.since(a, uid), r.claims.since(b, uid)
	if !first.Equal(&second) {
		return first.Before(&second)
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
}

// twins returns the requests for the other KubernetesClusters of the same UID, and for those that claim
// to be of it. A process that connects only learns from the status what a KubernetesCluster is bound to.
func (r *Reconciler) twins(ctx context.Context, o client.Object) []ctrl.Request {
	kc := o.(*v1alpha1.KubernetesCluster)
	others, err := r.sameUID(ctx, kc, kc.Status.UID)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find KubernetesClusters of one cluster")
		return nil
	}
	keys := r.proofs.against(client.ObjectKeyFromObject(kc))
	for _, other := range others {
		keys = append(keys, client.ObjectKeyFromObject(other))
	}
	if r.ConnectOnly {
		keys = append(keys, client.ObjectKeyFromObject(kc))
	}
	requests := make([]ctrl.Request, 0, len(keys))
	for _, key := range keys {
		requests = append(requests, ctrl.Request{NamespacedName: key})
	}
	return requests
}
