package kubernetescluster

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
)

// scope is what the steps of one reconciliation share.
type scope struct {
	// kc is the object that is reconciled; steps write its status.
	kc  *v1alpha1.KubernetesCluster
	key types.NamespacedName
	// pass emits events; nil if clusters are only connected.
	pass *reconcile.Pass

	// state is what the registry knows; set by look.
	state cluster.State
	// outcome ends the reconciliation if a step has set it.
	outcome *reconcile.Outcome
	// again is the time until it is looked again for others of the same UID; zero for never; set by compare.
	again time.Duration
	// agentAgain is the time until the agent is checked again; zero for never; set by keepAgent.
	agentAgain time.Duration
	// handover: another KubernetesCluster drives the cluster, or will; set by remove.
	handover bool
	// goes: what is left in the cluster goes without help; set by remains.
	goes bool
}
