package main

import (
	"context"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/controllers/application"
	"waybill.dev/waybill/sync/controllers/applicationdefinition"
	"waybill.dev/waybill/sync/controllers/applicationinstallation"
	"waybill.dev/waybill/sync/controllers/applicationrollback"
	"waybill.dev/waybill/sync/controllers/applicationsnapshot"
	"waybill.dev/waybill/sync/controllers/executionhook"
	"waybill.dev/waybill/sync/controllers/gitsync"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication"
	"waybill.dev/waybill/sync/controllers/kubernetesapplicationresource"
	"waybill.dev/waybill/sync/controllers/kubernetescluster"
	"waybill.dev/waybill/sync/controllers/kubernetescluster/agent"
	"waybill.dev/waybill/sync/controllers/sourcecredential"
	"waybill.dev/waybill/sync/controllers/statefulapplication"
	"waybill.dev/waybill/sync/controllers/valuesschema"
	"waybill.dev/waybill/sync/data/hook"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
)

// addLocal adds the selected controllers of the roles agent and data, which serve the cluster that
// they run in.
func addLocal(ctx context.Context, mgr ctrl.Manager, local *cluster.Cluster, o *options, selected map[string]bool) error {
	for _, add := range dataControllers(mgr, o) {
		if !selected[add.name] {
			continue
		}
		if err := add.setup(ctx, mgr); err != nil {
			return err
		}
	}
	if !selected[applications] {
		return nil
	}
	return (&application.Reconciler{
		Client:   mgr.GetClient(),
		Recorder: mgr.GetEventRecorder(programName),
		Cluster:  local,
	}).SetupWithManager(ctx, mgr)
}

// dataControllers returns the controllers of the role data.
func dataControllers(mgr ctrl.Manager, o *options) []controller {
	// The client of the manager caches no Secrets.
	store := &metadata.Store{Client: mgr.GetClient(), SystemNamespace: o.systemNamespace, Directory: o.metadataDir, Room: metadata.NewRoom(definitionsMemory())}
	finder := &contents.Finder{Reader: mgr.GetAPIReader(), Volumes: mgr.GetClient(), Mapper: mgr.GetRESTMapper()}
	return []controller{
		{executionHook, func(ctx context.Context, mgr ctrl.Manager) error {
			runner, err := hook.NewRunner(mgr.GetConfig())
			if err != nil {
				return err
			}
			return (&executionhook.Reconciler{
				Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(programName), Runner: runner, Pods: mgr.GetAPIReader(),
			}).SetupWithManager(ctx, mgr)
		}},
		{applicationSnapshot, (&applicationsnapshot.Reconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(programName), Finder: finder, Store: store, Direct: mgr.GetAPIReader(),
		}).SetupWithManager},
		{statefulApplication, (&statefulapplication.Reconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(programName), Reader: mgr.GetAPIReader(), Definitions: store,
		}).SetupWithManager},
		{applicationRollback, (&applicationrollback.Reconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(programName), Contents: finder, Definitions: store,
		}).SetupWithManager},
	}
}

// definitionsMemory is how much of the memory that the process may use the definitions of large snapshots may take at a time.
func definitionsMemory() int64 { return min(debug.SetMemoryLimit(-1)/4, 512<<20) }

// addControllers adds the selected controllers to the manager. Every process connects to the
// clusters, because all other controllers deliver to them. Only the one that runs the controller of
// KubernetesClusters writes their status.
func (s *shared) addControllers(ctx context.Context, mgr ctrl.Manager, o *options, selected map[string]bool) error {
	selector, err := labels.Parse(o.clusterSelector)
	if err != nil {
		return err
	}
	installer, err := agent.New(ctx, agent.Options{
		HubID:           s.hubID,
		SystemNamespace: o.systemNamespace,
		Charts:          s.charts,
		Templates:       s.builder,
		Image:           o.agentImage,
		Version:         version,

		DefaultServiceAccount: o.defaultAccount,
	})
	if err != nil {
		return err
	}
	clusters := &kubernetescluster.Reconciler{
		Client:          mgr.GetClient(),
		Recorder:        mgr.GetEventRecorder(programName),
		Clusters:        s.clusters,
		Secrets:         s.secrets,
		HubID:           s.hubID,
		SystemNamespace: o.systemNamespace,
		Kubeconfigs:     cluster.KubeconfigOptions{AllowExec: o.allowExec, AllowInsecure: o.allowInsecure},
		ClusterSelector: selector,
		Agent:           installer,
		Drain:           s.drain,
		ConnectOnly:     !selected[kubernetesCluster],
		RemoteOnly:      o.watchNamespace != "",
	}
	if err := clusters.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	for _, add := range append(s.hubControllers(mgr, o), s.driverControllers(mgr, o, selector)...) {
		if !selected[add.name] {
			continue
		}
		if err := add.setup(ctx, mgr); err != nil {
			return err
		}
	}
	return nil
}

// controller is a controller that can be selected.
type controller struct {
	name  string
	setup func(context.Context, ctrl.Manager) error
}

// hubControllers returns the controllers of the role hub.
func (s *shared) hubControllers(mgr ctrl.Manager, o *options) []controller {
	return []controller{
		{gitSync, (&gitsync.Reconciler{
			Client:          mgr.GetClient(),
			Recorder:        mgr.GetEventRecorder(programName),
			Clusters:        s.clusters,
			Secrets:         s.secrets,
			HubID:           s.hubID,
			Git:             s.git,
			Renders:         s.renders,
			Drain:           s.drain,
			SystemNamespace: o.systemNamespace,
			Workers:         o.workers,
		}).SetupWithManager},
		{applicationDefinition, (&applicationdefinition.Reconciler{
			Client:   mgr.GetClient(),
			Recorder: mgr.GetEventRecorder(programName),
			Clusters: s.clusters,
			HubID:    s.hubID,

			SystemNamespace: o.systemNamespace,
		}).SetupWithManager},
		{valuesSchema, (&valuesschema.Reconciler{
			Client:          mgr.GetClient(),
			Charts:          s.charts,
			Git:             s.git,
			Secrets:         s.secrets,
			SystemNamespace: o.systemNamespace,
		}).SetupWithManager},
		{sourceCredential, (&sourcecredential.Reconciler{
			Client:          mgr.GetClient(),
			Clusters:        s.clusters,
			Secrets:         s.secrets,
			HubID:           s.hubID,
			SystemNamespace: o.systemNamespace,
			ToNamespaces:    o.credentials == credentialsOfCluster,
		}).SetupWithManager},
	}
}

// driverControllers returns the controllers of the role driver, except that of KubernetesClusters.
func (s *shared) driverControllers(mgr ctrl.Manager, o *options, selector labels.Selector) []controller {
	return []controller{
		{applicationInstallation, (&applicationinstallation.Reconciler{
			Hub:             mgr.GetClient(),
			Clusters:        s.clusters,
			Secrets:         s.secrets,
			HubID:           s.hubID,
			Git:             s.git,
			Renders:         s.renders,
			Templates:       s.builder,
			Charts:          s.charts,
			Drain:           s.drain,
			SystemNamespace: o.systemNamespace,
			Actions:         o.actions,

			DefaultServiceAccount: o.defaultAccount,
			CredentialsOfCluster:  o.credentials == credentialsOfCluster,
		}).SetupWithManager},
		{kubernetesApplication, (&kubernetesapplication.Reconciler{
			Client:          mgr.GetClient(),
			Recorder:        mgr.GetEventRecorder(programName),
			Clusters:        s.clusters,
			HubID:           s.hubID,
			Direct:          mgr.GetAPIReader(),
			ClusterSelector: selector,
			Workers:         o.workers,
		}).SetupWithManager},
		{kubernetesApplicationResource, (&kubernetesapplicationresource.Reconciler{
			Client:          mgr.GetClient(),
			Recorder:        mgr.GetEventRecorder(programName),
			Clusters:        s.clusters,
			Secrets:         s.secrets,
			HubID:           s.hubID,
			Drain:           s.drain,
			ClusterSelector: selector,
			Workers:         o.workers,
			JobsPerCluster:  o.actions,
		}).SetupWithManager},
	}
}
