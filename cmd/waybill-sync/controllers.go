package main

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/controllers/application"
	"waybill.dev/waybill/sync/controllers/applicationdefinition"
	"waybill.dev/waybill/sync/controllers/applicationinstallation"
	"waybill.dev/waybill/sync/controllers/gitsync"
	"waybill.dev/waybill/sync/controllers/kubernetescluster"
)

// addAgent adds the selected controllers of the role agent, which serve the cluster that they
// run in.
func addAgent(ctx context.Context, mgr ctrl.Manager, local *cluster.Cluster, selected map[string]bool) error {
	if !selected[applications] {
		return nil
	}
	return (&application.Reconciler{
		Client:   mgr.GetClient(),
		Recorder: mgr.GetEventRecorder(userAgent),
		Cluster:  local,
	}).SetupWithManager(ctx, mgr)
}

// addControllers adds the selected controllers to the manager. Clusters are connected to in
// every process, for everything else delivers to them; what is known of them is written by
// the one that runs the controller of KubernetesClusters.
func (s *shared) addControllers(ctx context.Context, mgr ctrl.Manager, o *options, selected map[string]bool) error {
	selector, err := labels.Parse(o.clusterSelector)
	if err != nil {
		return err
	}
	clusters := &kubernetescluster.Reconciler{
		Client:          mgr.GetClient(),
		Recorder:        mgr.GetEventRecorder(userAgent),
		Clusters:        s.clusters,
		Secrets:         s.secrets,
		HubID:           s.hubID,
		Kubeconfigs:     cluster.KubeconfigOptions{AllowExec: o.allowExec, AllowInsecure: o.allowInsecure},
		ClusterSelector: selector,
		ConnectOnly:     !selected[kubernetesCluster],
	}
	if err := clusters.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	for _, add := range []struct {
		name  string
		setup func(context.Context, ctrl.Manager) error
	}{
		{gitSync, (&gitsync.Reconciler{
			Client:          mgr.GetClient(),
			Recorder:        mgr.GetEventRecorder(userAgent),
			Clusters:        s.clusters,
			Secrets:         s.secrets,
			HubID:           s.hubID,
			Git:             s.git,
			Drain:           s.drain,
			SystemNamespace: o.systemNamespace,
			Workers:         o.workers,
		}).SetupWithManager},
		{applicationDefinition, (&applicationdefinition.Reconciler{
			Client:   mgr.GetClient(),
			Recorder: mgr.GetEventRecorder(userAgent),
			Clusters: s.clusters,
			HubID:    s.hubID,
		}).SetupWithManager},
		{applicationInstallation, (&applicationinstallation.Reconciler{
			Hub:             mgr.GetClient(),
			Clusters:        s.clusters,
			Secrets:         s.secrets,
			HubID:           s.hubID,
			Git:             s.git,
			Charts:          s.charts,
			Drain:           s.drain,
			SystemNamespace: o.systemNamespace,
			Actions:         o.actions,
		}).SetupWithManager},
	} {
		if !selected[add.name] {
			continue
		}
		if err := add.setup(ctx, mgr); err != nil {
			return err
		}
	}
	return nil
}
