package kubernetescluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/kubernetescluster/provide"
)

// setUpProvider adds what creates the installations that the hub chooses for clusters. It must be called
// after engage was added to OnEngage, which brings the CRDs.
func (r *Reconciler) setUpProvider(ctx context.Context, mgr ctrl.Manager) error {
	if r.ConnectOnly {
		return nil
	}
	r.provider = &provide.Provider{
		Hub: r.Client, ConfigMaps: r.Secrets, Clusters: r.Clusters, SystemNamespace: r.SystemNamespace,
		Usable: r.usable, Wake: r.wake, Backoff: r.kernel.Backoff,
	}
	return r.provider.Setup(ctx, mgr)
}

// usable returns why no installation can be created in a cluster yet; nil if one can.
func (r *Reconciler) usable(key types.NamespacedName) error {
	e := r.engagements.Get(key)
	if e == nil {
		return errors.New("connecting")
	}
	return e.failure()
}

// provide writes what the cluster is provided with. It decides nothing about Ready: the cluster itself can
// be used all the same.
func (r *Reconciler) provide(s *scope) {
	waiting := ""
	switch state := s.state; {
	case s.kc.Spec.Paused:
		waiting = "spec.paused is set"
	case state.Yields != nil:
		waiting = state.Yields.Error()
	case state.Contacted && state.Err != nil:
		waiting = s.why()
	}
	provide.Record(s.kc, r.provider.Report(s.key), waiting)
}

// providedBy returns what is recorded by the KubernetesCluster that comes first of the others that lead to
// a cluster: what it was given under one name it is not given again under another.
func (r *Reconciler) providedBy(ctx context.Context, kc *v1alpha1.KubernetesCluster, uid string) ([]v1alpha1.ProvidedDefinition, bool, error) {
	others, err := r.sameCluster(ctx, kc, uid)
	if err != nil {
		return nil, false, fmt.Errorf("find other KubernetesClusters: %w", err)
	}
	first := r.firstOf(others, uid)
	if first == nil || first.Status.UID != uid {
		return nil, false, nil
	}
	return slices.Clone(first.Status.Provided), true, nil
}
