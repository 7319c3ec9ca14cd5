package gitsync_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/gitsync"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

// crds are those of the product, as the chart ships them.
const crds = "../../../charts/waybill/crds"

// world is that of one test: a hub on which the controller runs, a namespace, a repository.
type world struct {
	*hub.World
	process *hub.Process
	server  *env.GitServer
	repo    *env.GitRepo
}

var shared struct {
	sync.Mutex
	process *hub.Process
}

// newWorld returns a world on the hub that all tests share. Tests that wait for long, and neither count
// requests nor stop the process, are parallel.
func newWorld(t *testing.T) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "hub", Audit: true, CRDs: []string{crds}})
	shared.Lock()
	defer shared.Unlock()
	if shared.process == nil {
		shared.process = hub.Start(t, c, setup)
	}
	return makeWorld(t, c, shared.process)
}

func makeWorld(t *testing.T, c *env.Cluster, process *hub.Process) *world {
	t.Helper()
	w := &world{World: hub.NewWorld(t, c), process: process}
	w.server, w.repo = hub.NewRepo(t)
	w.CreateGitAuthority()
	return w
}

func setup(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
	return newReconciler(mgr, s).SetupWithManager(ctx, mgr)
}

func newReconciler(mgr ctrl.Manager, s hub.Shared) *gitsync.Reconciler {
	return &gitsync.Reconciler{
		Client:          mgr.GetClient(),
		Recorder:        mgr.GetEventRecorder("waybill-sync"),
		Clusters:        s.Clusters,
		Secrets:         s.Secrets,
		HubID:           s.HubID,
		Git:             s.Git,
		SystemNamespace: hub.SystemNamespace,
	}
}

// commit pushes files to the repository and returns the commit.
func (w *world) commit(files map[string]string) string {
	w.T.Helper()
	hash, err := w.repo.Commit(w.T.Context(), files)
	require.NoError(w.T, err)
	return hash
}

// remove pushes the removal of files.
func (w *world) remove(paths ...string) {
	w.T.Helper()
	_, err := w.repo.Delete(w.T.Context(), paths...)
	require.NoError(w.T, err)
}

// sync creates a GitSync of the repository's root, changed by change. Its interval is so long
// that only events and requests reconcile it.
func (w *world) sync(change func(*v1alpha1.GitSyncSpec)) *v1alpha1.GitSync {
	w.T.Helper()
	gs := &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Name: "apps"},
		Spec: v1alpha1.GitSyncSpec{
			URL:       w.repo.URL(),
			Interval:  metav1.Duration{Duration: time.Hour},
			SecretRef: &v1alpha1.LocalReference{Name: "git"},
		},
	}
	if change != nil {
		change(&gs.Spec)
	}
	w.Create(gs)
	return gs
}

// reasonNow is the reason of the condition Ready as it stands.
func (w *world) reasonNow(gs *v1alpha1.GitSync) string {
	w.T.Helper()
	require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(gs), gs))
	return conditions.GetReason(gs, v1alpha1.ReadyCondition)
}

// configMap is a manifest.
func configMap(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  key: " + value + "\n"
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
