package kubernetescluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	// proveTimeout bounds one proof.
	proveTimeout = 20 * time.Second
	// proveAgain is the time after which what could not be proved is tried again, if nothing has
	// changed that is known to matter.
	proveAgain = 5 * time.Minute
)

// unproved is the claim of a KubernetesCluster that it leads to the cluster that an incumbent is bound
// to.
type unproved struct {
	claimant types.NamespacedName
	// incumbent is empty for the cluster that the KubernetesClusters live in, if none is bound to it.
	incumbent types.NamespacedName
	// input identifies the claim: another one is proved anew.
	input string
	uid   string
}

// claimOn returns the claim of a KubernetesCluster on the cluster of an incumbent, which is nil for
// the local cluster.
func (r *Reconciler) claimOn(kc, incumbent *v1alpha1.KubernetesCluster, uid string) *unproved {
	claim, by := &unproved{claimant: client.ObjectKeyFromObject(kc), uid: uid}, types.UID("")
	if incumbent != nil {
		claim.incumbent, by = client.ObjectKeyFromObject(incumbent), incumbent.UID
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

// proofs holds the last proof of each KubernetesCluster.
type proofs struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]proof
}

func (p *proofs) put(claim *unproved, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = map[types.NamespacedName]proof{}
	}
	p.byKey[claim.claimant] = proof{claim: claim, err: err, again: time.Now().Add(proveAgain)}
}

// get returns the last proof of a claim.
func (p *proofs) get(claim *unproved) (proof, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.byKey[claim.claimant]
	return last, ok && last.claim.input == claim.input
}

// against returns the names that have tried to prove that they lead to the cluster of an incumbent.
func (p *proofs) against(incumbent types.NamespacedName) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	var claimants []types.NamespacedName
	for key, last := range p.byKey {
		if last.claim.incumbent == incumbent {
			claimants = append(claimants, key)
		}
	}
	return claimants
}

func (p *proofs) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}

// refuse returns a refusal unless a claim is proved.
func (p *proofs) refuse(claim *unproved) error {
	last, tried := p.get(claim)
	switch {
	case !tried:
		return &refusal{reason: v1alpha1.ProgressingReason, unproved: claim, message: fmt.Sprintf(
			"checking whether it leads to the cluster of %s, whose UID it reports", claim)}
	case last.err != nil:
		return &refusal{reason: v1alpha1.UIDConflictReason, unproved: claim, message: fmt.Sprintf(
			"it reports UID %s, which is that of %s, and is not proved to lead to the same cluster: %s; nothing is done through it: "+
				"correct the kubeconfig, or delete the KubernetesCluster that is not what it reports to be",
			claim.uid, claim, claim.explain(last.err))}
	default:
		return nil
	}
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

// refused reports why the cluster is not used, and has its claim proved if that is due.
func (r *Reconciler) refused(s *scope, why *refusal) error {
	switch {
	case why.reason == v1alpha1.ClusterChangedReason:
		return reconcile.Stalled(why.reason, "%s", why.message)
	case why.unproved == nil || r.prove(s, why.unproved):
		s.connecting()
		return nil
	}
	last, _ := r.proofs.get(why.unproved)
	return reconcile.Waiting(why.reason, time.Until(last.again), "%s", why.message)
}

// prove tries to prove a claim, outside of the workers, unless that was done and is not due again. It
// reports whether guard is yet to decide by the result.
func (r *Reconciler) prove(s *scope, claim *unproved) (pending bool) {
	last, tried := r.proofs.get(claim)
	if tried && (last.err == nil || time.Now().Before(last.again)) {
		return last.err == nil
	}
	kc := s.kc.DeepCopy()
	err, done := r.jobs.Do(s.key.String(), reconcile.KeyOf(kc), claim.input, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, proveTimeout)
		defer cancel()
		return r.proveNow(ctx, kc, claim)
	})
	if done {
		r.proofs.put(claim, err)
		r.Clusters.Probe(s.key)
	}
	return !tried || done && err == nil
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
			return fmt.Errorf("%s: %w", claim, err)
		}
	}
	return r.Clusters.Prove(ctx, through, by)
}

// configOf returns the configuration that leads to the cluster of an incumbent.
func (r *Reconciler) configOf(ctx context.Context, claim *unproved) (*rest.Config, error) {
	incumbent := &v1alpha1.KubernetesCluster{}
	if err := r.Client.Get(ctx, claim.incumbent, incumbent); err != nil {
		return nil, err
	}
	if incumbent.Spec.Paused {
		return nil, errors.New("it is paused")
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
