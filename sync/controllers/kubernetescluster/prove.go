package kubernetescluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	// proveTimeout bounds one proof.
	proveTimeout = 20 * time.Second
	// proveAgain is the time after which what could not be proved is tried again, if nothing has
	// changed that is known to matter.
	proveAgain = 5 * time.Minute
	// provedAtOnce is how many claims of one KubernetesCluster are proved at a time.
	provedAtOnce = 64
)

// unproved is the claim of a KubernetesCluster that it leads to the cluster that an incumbent is bound
// to.
type unproved struct {
	claimant types.NamespacedName
	// incumbent is empty for the cluster that the KubernetesClusters live in, if none is bound to it.
	incumbent types.NamespacedName
	// input identifies the claim: another one needs another proof.
	input string
	uid   string
}

// claimOn returns the claim of a KubernetesCluster on the cluster of an incumbent, which is nil for
// the local cluster.
func (r *Reconciler) claimOn(kc, incumbent *v1alpha1.KubernetesCluster, uid string) *unproved {
	claim, by := &unproved{claimant: client.ObjectKeyFromObject(kc), uid: uid}, ""
	if incumbent != nil {
		claim.incumbent = client.ObjectKeyFromObject(incumbent)
		by = string(incumbent.UID) + " with " + r.kubeconfigs.hash(claim.incumbent)
	}
	claim.input = fmt.Sprintf("prove %s of %s with %s by %q, asked for at %q", uid, kc.UID, r.kubeconfigs.hash(claim.claimant), by,
		kc.Annotations[v1alpha1.ReconcileAtAnnotation])
	return claim
}

// isLocal reports whether the incumbent is the local cluster, without a KubernetesCluster.
func (u *unproved) isLocal() bool { return u.incumbent.Name == "" }

// String names the incumbent.
func (u *unproved) String() string {
	if u.isLocal() {
		return "the hub itself"
	}
	return "KubernetesCluster " + u.incumbent.String()
}

// proof is the result of the last try to prove a claim.
type proof struct {
	claim *unproved
	err   error
	again time.Time // when to try once more
}

// proofs holds the last proof of each claim.
type proofs struct {
	byPair keyed.Map[pair, proof]
}

func (p *proofs) put(claim *unproved, err error) {
	p.byPair.Put(claim.pair(), proof{claim: claim, err: err, again: time.Now().Add(proveAgain)})
}

// get returns the last proof of a claim.
func (p *proofs) get(claim *unproved) (proof, bool) {
	last, ok := p.byPair.Lookup(claim.pair())
	return last, ok && last.claim.input == claim.input
}

// against returns the names that have tried to prove that they lead to the cluster of an incumbent.
func (p *proofs) against(incumbent types.NamespacedName) []types.NamespacedName {
	var claimants []types.NamespacedName
	for _, key := range p.byPair.Keys() {
		if key.incumbent == incumbent {
			claimants = append(claimants, key.claimant)
		}
	}
	return claimants
}

// forget drops what a KubernetesCluster has proved, and what was proved against it.
func (p *proofs) forget(key types.NamespacedName) {
	p.byPair.DropFunc(func(of pair, _ proof) bool { return of.claimant == key || of.incumbent == key })
}

func (u *unproved) pair() pair { return pair{u.claimant, u.incumbent} }

// checking returns the refusal of what is yet to prove claims.
func checking(claims []*unproved) error {
	return &refusal{reason: v1alpha1.ProgressingReason, unproved: claims, message: fmt.Sprintf(
		"checking whether it leads to the cluster of %s, whose UID it reports", claims[0])}
}

// conflict returns the refusal of what did not prove a claim.
func (u *unproved) conflict(err error) error {
	return &refusal{reason: v1alpha1.UIDConflictReason, unproved: []*unproved{u}, message: fmt.Sprintf(
		"it reports UID %s, which is that of %s, and is not proved to lead to the same cluster: %s; nothing is done through it: "+
			"correct the kubeconfig, or delete the KubernetesCluster that is not what it reports to be",
		u.uid, u, u.explain(err))}
}

// explain says why a claim is not proved, and what to do.
func (u *unproved) explain(err error) string {
	var failed *cluster.ProofError
	switch {
	case !errors.As(err, &failed):
		return err.Error()
	case failed.Incumbent:
		return fmt.Sprintf("%s %s", u, failed)
	default:
		return "its kubeconfig " + failed.Error()
	}
}

// incumbentError says why a proof cannot be read through the incumbent.
type incumbentError struct{ error }

func (e *incumbentError) Unwrap() error { return e.error }

// refused reports why the cluster is not used, and has its claims proved if that is due.
func (r *Reconciler) refused(s *scope, why *refusal) error {
	if why.reason == v1alpha1.ClusterChangedReason {
		return reconcile.Stalled(why.reason, "%s", why.message)
	}
	r.prove(s, why.unproved)
	if why.reason == v1alpha1.ProgressingReason { // guard is yet to decide by the results
		s.connecting()
		return nil
	}
	return reconcile.Waiting(why.reason, r.proofs.due(why.unproved), "%s", why.message)
}

// prove tries to prove the claims of which that was not done, or is due again, outside of the workers.
// The results enqueue the KubernetesCluster.
func (r *Reconciler) prove(s *scope, claims []*unproved) {
	var due []*unproved
	input := "prove"
	for _, claim := range claims {
		last, tried := r.proofs.get(claim)
		if !tried || last.err != nil && !time.Now().Before(last.again) {
			due = append(due, claim)
			input += fmt.Sprintf(" %s after %d,", claim.input, last.again.UnixNano())
		}
	}
	if len(due) == 0 {
		return
	}
	kc := s.kc.DeepCopy()
	_, _ = r.jobs.Do(s.key.String(), reconcile.KeyOf(kc), input, func(ctx context.Context) error {
		var all errgroup.Group
		all.SetLimit(provedAtOnce)
		for _, claim := range due {
			all.Go(func() error {
				ctx, cancel := context.WithTimeout(ctx, proveTimeout)
				defer cancel()
				r.proofs.put(claim, r.proveNow(ctx, kc, claim))
				return nil
			})
		}
		return all.Wait()
	})
}

// proveNow returns nil if two KubernetesClusters lead to one cluster.
func (r *Reconciler) proveNow(ctx context.Context, kc *v1alpha1.KubernetesCluster, claim *unproved) error {
	through, err := r.config(ctx, kc)
	if err != nil {
		return err
	}
	by := r.Clusters.Local().Config()
	if !claim.isLocal() {
		if by, err = r.configOf(ctx, claim); err != nil {
			return &incumbentError{fmt.Errorf("%s: %w", claim, err)}
		}
	}
	return r.Clusters.Prove(ctx, through, by)
}

// configOf returns the configuration that leads to the cluster of an incumbent, also of one that is
// paused: otherwise that would keep others from a cluster that it does not lead to.
func (r *Reconciler) configOf(ctx context.Context, claim *unproved) (*rest.Config, error) {
	incumbent := &v1alpha1.KubernetesCluster{}
	if err := r.Client.Get(ctx, claim.incumbent, incumbent); err != nil {
		return nil, err
	}
	return r.config(ctx, incumbent)
}

// config returns the configuration that leads to the cluster of a KubernetesCluster.
func (r *Reconciler) config(ctx context.Context, kc *v1alpha1.KubernetesCluster) (*rest.Config, error) {
	found, err := r.kubeconfig(ctx, &scope{kc: kc, key: client.ObjectKeyFromObject(kc)})
	if err != nil {
		return nil, err
	}
	if found.config == nil {
		return r.Clusters.Local().Config(), nil
	}
	return found.config, nil
}
