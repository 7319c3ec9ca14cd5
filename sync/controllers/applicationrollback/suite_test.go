package applicationrollback_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/application"
	"waybill.dev/waybill/sync/controllers/applicationrollback"
	"waybill.dev/waybill/sync/controllers/applicationsnapshot"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

// class is the ApplicationSnapshotClass of all tests: no hooks.
const class = "plain"

// world is that of one test: an application `db` in a namespace of the cluster that all share.
type world struct {
	*hub.World
	*volumes.Volumes
}

var shared struct {
	sync.Mutex
	others, process, restorer *hub.Process
}

// newWorld returns a world in which rollbacks are reconciled.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := newIdleWorld(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.process == nil {
		shared.process = w.start(nil, func(c client.Client) client.Client { return &some{c, func(ns string) bool { return !apart(ns) }} })
	}
	return w
}

// newIdleWorld returns a world in which no controller reconciles rollbacks yet: see alone.
func newIdleWorld(t *testing.T) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "data", Pods: true, CRDs: []string{"../../../charts/waybill/crds", volumes.CRDs(t)}})
	w := &world{hub.NewWorld(t, c), volumes.On(t, c)}
	shared.Lock()
	defer shared.Unlock()
	if shared.others == nil {
		shared.others = hub.Start(t, c, w.setupOthers)
		err := w.Client.Create(t.Context(), &v1alpha1.ApplicationSnapshotClass{
			ObjectMeta: metav1.ObjectMeta{Name: class}, Snapshotter: v1alpha1.DataHandler, Quiesce: v1alpha1.QuiesceHooks,
		})
		require.NoError(t, client.IgnoreAlreadyExists(err))
	}
	return w
}

// setupOthers adds the controllers that a rollback works with.
func (w *world) setupOthers(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
	apps := &application.Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("application"), Cluster: s.Clusters.Local()}
	if err := apps.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	return (&applicationsnapshot.Reconciler{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("applicationsnapshot"), Direct: mgr.GetAPIReader(),
		Finder: &contents.Finder{Reader: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper()},
		Store:  &metadata.Store{Client: mgr.GetClient(), SystemNamespace: hub.SystemNamespace},
	}).SetupWithManager(ctx, mgr)
}

func direct(mgr ctrl.Manager) client.Client {
	c, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		panic(err)
	}
	return c
}

// limits are how long phases may take, where a test waits for that.
type limits map[v1alpha1.RollbackPhase]time.Duration

// alone runs a controller for the rollbacks of this test, and of no other.
func (w *world) alone(l limits) *hub.Process {
	aparts.Store(w.Namespace, true)
	return w.start(l, func(c client.Client) client.Client {
		return &some{c, func(ns string) bool { return ns == w.Namespace }}
	})
}

// captured returns the world of an application that is as before in snapshot "one", and as after by now.
func captured(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	return w
}

// capturedTwice is captured, with "c" in snapshot "two" in between.
func capturedTwice(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	w.write("c")
	w.snapshot("two")
	w.write(after)
	return w
}

// busy has the driver make no volumes for the application until release is called.
func (w *world) busy() (release func()) {
	return w.Driver.Inject(csidriver.Fault{Method: "CreateVolume", Namespace: w.Namespace, Code: codes.Unavailable, Message: "busy"})
}

// start runs the controller with clients that are wrapped.
func (w *world) start(l limits, wrap func(client.Client) client.Client) *hub.Process {
	return hub.Start(w.T, w.Cluster, func(ctx context.Context, mgr ctrl.Manager, _ hub.Shared) error {
		live := direct(mgr)
		return (&applicationrollback.Reconciler{
			Client: wrap(mgr.GetClient()), Recorder: mgr.GetEventRecorder("applicationrollback"),
			Live:        wrap(live),
			Contents:    &contents.Finder{Reader: live, Mapper: mgr.GetRESTMapper()},
			Definitions: &metadata.Store{Client: live, SystemNamespace: hub.SystemNamespace, Room: metadata.NewRoom(1)},
			Limits:      l,
		}).SetupWithManager(ctx, mgr)
	})
}

// labels of everything that belongs to the application.
func labels() map[string]string { return map[string]string{"app": "db"} }

// install creates the application: a StatefulSet whose claims are of the StorageClass, and its settings.
func (w *world) install(storageClass string) {
	w.T.Helper()
	w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Labels: labels()}, Data: map[string]string{"mode": "a"}})
	w.Create(w.database(storageClass))
	component := func(group, kind string) v1alpha1.ApplicationComponent {
		return v1alpha1.ApplicationComponent{Group: group, Kind: kind}
	}
	w.Create(&v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: v1alpha1.ApplicationSpec{
			Type: "db", Selector: &metav1.LabelSelector{MatchLabels: labels()},
			Components: []v1alpha1.ApplicationComponent{component("apps", "StatefulSet"), component("", "ConfigMap")},
		},
	})
	w.Create(&v1alpha1.StatefulApplication{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: "db"}})
	w.awaitRunning("db-0")
	hub.AwaitReady(w.World, w.application())
}

func (w *world) application() *v1alpha1.Application {
	return &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}
}

func (w *world) database(storageClass string) *appsv1.StatefulSet {
	pod := volumes.Pod(w.Namespace, "", "data")
	pod.Spec.Volumes = nil
	claim := volumes.Claim("", "data", storageClass)
	claim.Labels = labels()
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Labels: labels()},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(int32(1)), ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels()},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels()}, Spec: pod.Spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim},
		},
	}
}

func (w *world) awaitRunning(pod string) {
	w.T.Helper()
	found := &corev1.Pod{}
	require.True(w.T, w.Eventually(func() bool {
		err := w.Client.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: pod}, found)
		return err == nil && found.Status.Phase == corev1.PodRunning && found.DeletionTimestamp == nil
	}), "Pod %s does not run: %+v", pod, found.Status)
}

// write writes a text into the application's volume, and into its settings.
func (w *world) write(text string) {
	w.T.Helper()
	w.sh("printf " + text + " >data/file")
	hub.Change(w.World, w.settings(), func(c *corev1.ConfigMap) { c.Data = map[string]string{"mode": text} })
}

func (w *world) sh(script string) string {
	w.T.Helper()
	w.awaitRunning("db-0")
	result, err := w.Exec(w.T.Context(), w.Namespace, "db-0", script)
	require.NoError(w.T, err)
	require.Zero(w.T, result.Code, result.Stderr)
	return result.Stdout
}

func (w *world) settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "settings"}}
}

// requireState checks what is in the application's volume and in its settings.
func (w *world) requireState(text string) {
	w.T.Helper()
	require.Equal(w.T, text, w.sh("cat data/file"))
	settings := w.settings()
	require.True(w.T, w.Exists(settings, settings.Name))
	require.Equal(w.T, text, settings.Data["mode"])
}

// snapshot takes a snapshot of the application.
func (w *world) snapshot(name string) *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	return w.snapshotOf("db", name)
}

// snapshotOf takes a snapshot of the application of a StatefulApplication.
func (w *world) snapshotOf(application, name string) *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	s := &v1alpha1.ApplicationSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ApplicationSnapshotSpec{
			SnapshotClassName: class,
			Source:            v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: application},
		},
	}
	w.Create(s)
	return hub.Await(w.World, s, "the snapshot is not ready", func(s *v1alpha1.ApplicationSnapshot) bool { return s.Status.Phase == v1alpha1.SnapshotReady })
}

// rollback returns a rollback of the application.
func (w *world) rollback(name, snapshot string) *v1alpha1.ApplicationRollback {
	return &v1alpha1.ApplicationRollback{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec: v1alpha1.ApplicationRollbackSpec{
			SnapshotClassName: class, ApplicationName: "db",
			Source: v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: snapshot}},
		},
	}
}

// awaitPhase waits until a rollback is at a phase, and its condition is that of the phase.
func (w *world) awaitPhase(r *v1alpha1.ApplicationRollback, phase v1alpha1.RollbackPhase) *v1alpha1.ApplicationRollback {
	w.T.Helper()
	ok := w.Eventually(func() bool {
		err := w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(r), r)
		return err == nil && r.Status.Phase == phase && r.Status.ObservedGeneration == r.Generation &&
			(!settled[phase] || !conditions.IsUnknown(r, v1alpha1.ReadyCondition) && !conditions.IsTrue(r, v1alpha1.ReconcilingCondition))
	})
	require.True(w.T, ok, "%s is not %s but %+v", r.Name, phase, r.Status)
	return r
}

// settled are the phases whose condition says how it ended, once no request is tried again.
var settled = map[v1alpha1.RollbackPhase]bool{
	v1alpha1.RollbackCompleted: true, v1alpha1.RollbackReverted: true, v1alpha1.RollbackFinal: true, v1alpha1.RollbackFailed: true,
}

// decide sets the decision of a rollback.
func (w *world) decide(r *v1alpha1.ApplicationRollback, decision v1alpha1.RollbackDecision) {
	w.T.Helper()
	hub.Change(w.World, r, func(r *v1alpha1.ApplicationRollback) { r.Spec.Decision = decision })
}

// claim returns a claim of the namespace, which exists.
func (w *world) claim(name string) *corev1.PersistentVolumeClaim {
	w.T.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	require.True(w.T, w.Exists(claim, name), "claim %s is not there", name)
	return claim
}

// volumeExists reports whether there is a PersistentVolume.
func (w *world) volumeExists(name string) bool {
	w.T.Helper()
	err := w.Client.Get(w.T.Context(), client.ObjectKey{Name: name}, &corev1.PersistentVolume{})
	if err != nil {
		require.True(w.T, apierrors.IsNotFound(err), err)
	}
	return err == nil
}

// requireNothingBeside checks that no claim of a rollback is left but those of the application.
func (w *world) requireNothingBeside() {
	w.T.Helper()
	all := &corev1.PersistentVolumeClaimList{}
	require.True(w.T, w.Eventually(func() bool {
		require.NoError(w.T, w.Client.List(w.T.Context(), all, client.InNamespace(w.Namespace)))
		for i := range all.Items {
			if strings.Contains(all.Items[i].Name, "-restore-") {
				return false
			}
		}
		return true
	}), "%+v", all.Items)
}
