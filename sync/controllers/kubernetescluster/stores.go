package kubernetescluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/excerpt"
)

// storeOf returns which of the clusters with that UID a KubernetesCluster leads to: that of another
// KubernetesCluster if they are proved to share it, and else one of its own. It returns a refusal while
// that is not known yet, or cannot be known because of the KubernetesCluster itself. One that is bound
// already is never refused.
func (r *Reconciler) storeOf(kc *v1alpha1.KubernetesCluster, uid string, others []*v1alpha1.KubernetesCluster) (string, error) {
	bound, store := r.claims.boundTo(kc)
	if uid == r.Clusters.Local().UID() {
		return "", r.refuseLocal(kc, uid)
	}
	var untried []*unproved
	rivals := r.rivals(kc, uid, others)
	for _, rival := range rivals {
		claim := r.claimOn(kc, rival, uid)
		last, tried := r.proofs.get(claim)
		switch {
		case tried && last.err == nil:
			_, shared := r.claims.boundTo(rival)
			return shared, nil
		case bound == uid:
		case !tried:
			untried = append(untried, claim)
		case last.byClaimant():
			return "", claim.conflict(last.err)
		}
	}
	switch {
	case bound == uid:
		return store, nil
	case len(untried) > 0:
		return "", checking(untried)
	case len(rivals) == 0:
		return "", nil
	default:
		return string(kc.UID), nil
	}
}

// refuseLocal returns a refusal if a KubernetesCluster with a kubeconfig only says that it leads to the
// cluster that it lives in. There is no doubt which one is wrong: this process talks to that cluster
// itself.
func (r *Reconciler) refuseLocal(kc *v1alpha1.KubernetesCluster, uid string) error {
	if kc.Spec.KubeconfigSecretRef == nil || r.claims.bound(kc) == uid {
		return nil
	}
	claim := r.claimOn(kc, nil, uid)
	last, tried := r.proofs.get(claim)
	switch {
	case !tried:
		return checking([]*unproved{claim})
	case last.err != nil:
		return claim.conflict(last.err)
	default:
		return nil
	}
}

// rivals returns the first KubernetesCluster of each other cluster with that UID. If kc is bound, those
// are left out that are to find out themselves whether they share its cluster: each that it precedes.
func (r *Reconciler) rivals(kc *v1alpha1.KubernetesCluster, uid string, others []*v1alpha1.KubernetesCluster) []*v1alpha1.KubernetesCluster {
	bound, store := r.claims.boundTo(kc)
	firsts := r.firsts(others, uid)
	if bound != uid {
		return firsts
	}
	return slices.DeleteFunc(firsts, func(first *v1alpha1.KubernetesCluster) bool {
		_, other := r.claims.boundTo(first)
		return other == store || r.precedes(kc, first, uid)
	})
}

// firsts returns the KubernetesCluster that comes first of each of several clusters with one UID, in
// their order.
func (r *Reconciler) firsts(all []*v1alpha1.KubernetesCluster, uid string) []*v1alpha1.KubernetesCluster {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *v1alpha1.KubernetesCluster) int {
		if r.precedes(a, b, uid) {
			return -1
		}
		return 1
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(sorted, func(kc *v1alpha1.KubernetesCluster) bool {
		_, store := r.claims.boundTo(kc)
		again := seen[store]
		seen[store] = true
		return again
	})
}

// inStore returns those that lead to one of the clusters with one UID.
func (r *Reconciler) inStore(all []*v1alpha1.KubernetesCluster, store string) []*v1alpha1.KubernetesCluster {
	return slices.DeleteFunc(slices.Clone(all), func(kc *v1alpha1.KubernetesCluster) bool {
		_, of := r.claims.boundTo(kc)
		return of != store
	})
}

// byClaimant reports whether nothing is known because of the KubernetesCluster that is to prove
// something. What the other one does or leaves out keeps it from nothing.
func (p *proof) byClaimant() bool {
	var failed *cluster.ProofError
	var other *incumbentError
	switch {
	case errors.Is(p.err, cluster.ErrAnotherCluster), errors.As(p.err, &other):
		return false
	case errors.As(p.err, &failed):
		return !failed.Incumbent
	default:
		return true
	}
}

// compare writes a condition if other KubernetesClusters report the UID of this one and are not proved
// to lead to its cluster, and has that proved or disproved.
func (r *Reconciler) compare(ctx context.Context, s *scope) error {
	uid, store := r.claims.boundTo(s.kc)
	if uid == "" || s.state.UID != uid {
		return nil
	}
	others, err := r.sameUID(ctx, s.kc, uid)
	if err != nil {
		return err
	}
	var names []string
	for _, first := range r.firsts(others, uid) {
		if _, other := r.claims.boundTo(first); other != store {
			names = append(names, client.ObjectKeyFromObject(first).String())
		}
	}
	if len(names) == 0 {
		conditions.Delete(s.kc, v1alpha1.UIDConflictCondition)
		return nil
	}
	claims := r.claimsOn(s.kc, uid, others)
	conditions.MarkTrue(s.kc, v1alpha1.UIDConflictCondition, v1alpha1.UIDConflictReason,
		"UID %s is reported by KubernetesCluster %s as well, which is not proved to lead to the same cluster%s: one API server pretends to be another, "+
			"or a cluster was restored from a backup of another; each is used as a cluster of its own", uid, excerpt.Names(names, shown), r.proofs.unknown(claims))
	if s.state.Err == nil {
		r.prove(s, claims)
		s.again = r.proofs.due(claims)
	}
	return nil
}

// claimsOn returns what a KubernetesCluster that is bound to a cluster with that UID has to find out.
func (r *Reconciler) claimsOn(kc *v1alpha1.KubernetesCluster, uid string, others []*v1alpha1.KubernetesCluster) []*unproved {
	var claims []*unproved
	for _, rival := range r.rivals(kc, uid, others) {
		claims = append(claims, r.claimOn(kc, rival, uid))
	}
	return claims
}

// unknown returns why one of the claims is neither proved nor disproved; empty if all are.
func (p *proofs) unknown(claims []*unproved) string {
	for _, claim := range claims {
		if last, tried := p.get(claim); tried && last.err != nil && !errors.Is(last.err, cluster.ErrAnotherCluster) {
			return ", since " + claim.explain(last.err)
		}
	}
	return ""
}

// due returns the time until one of the claims that could not be decided is tried again; 0 if there is
// none.
func (p *proofs) due(claims []*unproved) time.Duration {
	var first time.Duration
	for _, claim := range claims {
		if last, tried := p.get(claim); tried && last.err != nil {
			if after := max(time.Until(last.again), time.Second); first == 0 || after < first {
				first = after
			}
		}
	}
	return first
}

// pair is the KubernetesCluster that is to prove something, and the one that it is proved against.
type pair struct{ claimant, incumbent types.NamespacedName }
