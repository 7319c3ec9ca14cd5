package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/cluster/rewind"
	"waybill.dev/waybill/sync/health/rules"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/render/isolated"
	"waybill.dev/waybill/sync/source/address"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/disk"
	"waybill.dev/waybill/sync/source/git"
)

const (
	defaultSystemNamespace = v1alpha1.DefaultSystemNamespace
	programName            = "waybill-sync"
)

// unusedMirror is how long an unused git mirror is kept.
const unusedMirror = 24 * time.Hour

// shutdownRest is how much longer than --shutdown-grace the whole shutdown may take: jobs whose
// context was canceled record their progress, and everything else stops.
const shutdownRest = 30 * time.Second

// driverOnly is a transform that keeps the CSI driver of a PersistentVolume, and nothing else but its name and version.
func driverOnly(in any) (any, error) {
	volume, ok := in.(*corev1.PersistentVolume)
	if !ok {
		return in, nil
	}
	kept := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		Name: volume.Name, UID: volume.UID, ResourceVersion: volume.ResourceVersion,
	}}
	if csi := volume.Spec.CSI; csi != nil {
		kept.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: csi.Driver}
	}
	return kept, nil
}

// newManager returns a manager for the hub. Its caches hold our own kinds, without managed fields,
// the metadata of Secrets, and the CSI drivers of PersistentVolumes.
func newManager(config *rest.Config, o *options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	guard := rewind.NewGuard()
	caches := cache.Options{
		DefaultTransform: cluster.Trim, NewInformer: guard.NewInformer,
		ByObject: map[client.Object]cache.ByObject{&corev1.PersistentVolume{}: {Transform: driverOnly}},
	}
	if o.watchNamespace != "" {
		caches.DefaultNamespaces = map[string]cache.Config{o.watchNamespace: {}}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         caches,
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              o.leaderID,
		LeaderElectionNamespace:       o.systemNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(o.shutdownGrace + shutdownRest),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	if err := mgr.Add(guard); err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("caches", cachesSynced(mgr.GetCache())); err != nil {
		return nil, err
	}
	return mgr, nil
}

// gcPercent makes a process collect garbage when the heap has grown by three quarters, rather than doubled:
// it waits most of the time, so that memory costs more than CPU. With less, collecting is a third of what it
// does while it is busy. GOGC in the environment takes precedence.
const gcPercent = 75

// shared holds what several controllers use.
type shared struct {
	hubID    string
	clusters *cluster.Registry
	secrets  *content.Reader
	git      *git.Store
	charts   *chart.Cache
	renders  *render.Slots
	builder  *isolated.Builder
	drain    *reconcile.Drain
	local    *cluster.Cluster
}

// setup adds the selected controllers, and everything that they share, to the manager.
func setup(ctx context.Context, mgr ctrl.Manager, o *options, selected map[string]bool) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	drain := reconcile.NewDrain(o.shutdownGrace)
	if err := mgr.Add(drain); err != nil {
		return err
	}
	local, err := cluster.NewLocal(drain.Context(), mgr.GetConfig(), mgr.GetCache(), mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	healthrules.Follow(ctrl.LoggerInto(drain.Context(), ctrl.Log), local.Dynamic(), o.systemNamespace, mgr.GetEventRecorder(programName))
	if err := addLocal(drain.Context(), mgr, local, o, selected); err != nil {
		return err
	}
	if onlyLocal(selected) {
		return nil
	}
	s, err := newShared(ctx, mgr, o, shared{drain: drain, local: local})
	if err != nil {
		return err
	}
	return s.addControllers(drain.Context(), mgr, o, selected)
}

// newShared completes s with everything that the controllers of a hub need.
func newShared(ctx context.Context, mgr ctrl.Manager, o *options, s shared) (*shared, error) {
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	if s.hubID, err = cluster.EnsureHubID(ctx, direct, o.systemNamespace); err != nil {
		return nil, err
	}
	s.clusters = cluster.NewRegistry(s.local, cluster.Options{UserAgent: mgr.GetConfig().UserAgent, Log: ctrl.Log.WithName("cluster")})
	s.secrets = content.NewReader(ctx, mgr.GetCache(), direct)
	mirrors, charts := disk.Divide(o.cacheSize.Value())
	guard := address.Guard{Refuse: !o.allowLocalSources}
	if s.git, err = git.NewStore(filepath.Join(o.cacheDir, "git"), git.WithLimits(mirrors), git.WithGuard(guard)); err != nil {
		return nil, fmt.Errorf("open --cache-dir: %w", err)
	}
	if s.charts, err = chart.NewCache(filepath.Join(o.cacheDir, "charts"), chart.WithLimits(charts), chart.WithGuard(guard)); err != nil {
		return nil, fmt.Errorf("open --cache-dir: %w", err)
	}
	s.builder = isolated.NewBuilder(isolated.Options{Memory: o.renderMemory.Value()})
	s.renders = render.NewSlots(s.builder.Build)
	// Everything that jobs need must last until they have ended.
	clusters := func(context.Context) error { return s.clusters.Start(s.drain.Context()) }
	for _, part := range []manager.Runnable{manager.RunnableFunc(clusters), manager.RunnableFunc(s.sweep)} {
		if err := mgr.Add(part); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// sweep removes unused git mirrors.
func (s *shared) sweep(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if _, err := s.git.Sweep(unusedMirror); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "remove unused git mirrors")
		}
	}, unusedMirror/24)
	return s.git.Close()
}
