package applicationsnapshot_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/applicationsnapshot"
	"waybill.dev/waybill/sync/controllers/executionhook"
	"waybill.dev/waybill/sync/data/hook"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	snapshots "waybill.dev/waybill/sync/data/snapshot/volumes"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

// patience is how long a VolumeSnapshot may be in error in these tests.
const patience = 500 * time.Millisecond

// most is how many snapshots are taken at a time in these tests: many of them hang on purpose.
const most = 1000

// world is that of one test: a namespace with an application, on the cluster and with the controllers that
// all share.
type world struct {
	*hub.World
	volumes *volumes.Volumes
	cluster *env.Cluster
	direct  client.Client
	class   *v1alpha1.ApplicationSnapshotClass
}

var shared struct {
	sync.Mutex
	process *hub.Process
	dir     string
	// parallel, waits and turn are those of the controllers that start next.
	parallel, waits int
	turn            time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "snapshots", Pods: true, Audit: true, CRDs: []string{"../../../charts/waybill/crds", volumes.CRDs(t)}})
	w := &world{World: hub.NewWorld(t, c), volumes: volumes.On(t, c), cluster: c}
	direct, err := snapshots.NewClient(c.RESTConfig(), w.Client.RESTMapper())
	require.NoError(t, err)
	w.direct = direct
	shared.Lock()
	defer shared.Unlock()
	if shared.process == nil {
		shared.dir, err = c.Dir("definitions")
		require.NoError(t, err)
		shared.parallel = most
		shared.process = w.start()
	}
	w.class = &v1alpha1.ApplicationSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Snapshotter: v1alpha1.DataHandler,
		PreHooks:  []v1alpha1.HookSpec{{Name: "lock", ActionName: "lock"}},
		PostHooks: []v1alpha1.HookSpec{{Name: "unlock", ActionName: "unlock"}},
	}
	return w
}

// uncached are the kinds that a manager reads without a cache.
var uncached = []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}

// start runs the controllers.
func (w *world) start() *hub.Process {
	return hub.Start(w.T, w.cluster, func(ctx context.Context, mgr ctrl.Manager, _ hub.Shared) error { return add(ctx, mgr) })
}

// add adds the controllers to a manager.
func add(ctx context.Context, mgr ctrl.Manager) error {
	runner, err := hook.NewRunner(mgr.GetConfig())
	if err != nil {
		return err
	}
	hooks := &executionhook.Reconciler{
		Client: seamClient{mgr.GetClient()}, Recorder: mgr.GetEventRecorder("executionhook"), Runner: seamRunner{runner}, Pods: mgr.GetAPIReader(),
	}
	if err := hooks.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	return (&applicationsnapshot.Reconciler{
		Client: seamClient{mgr.GetClient()}, Recorder: mgr.GetEventRecorder("applicationsnapshot"), Direct: mgr.GetAPIReader(),
		Finder:   &contents.Finder{Reader: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper()},
		Store:    &metadata.Store{Client: mgr.GetClient(), SystemNamespace: hub.SystemNamespace, Directory: shared.dir},
		Patience: patience, Parallel: shared.parallel, Waits: shared.waits, Turn: shared.turn,
	}).SetupWithManager(ctx, mgr)
}

// restart ends the controllers, then calls between, and starts others.
func (w *world) restart(between func()) {
	shared.Lock()
	defer shared.Unlock()
	shared.process.Stop()
	between()
	shared.process = w.start()
}

// application creates an application that runs, `db`, with these claims for each of its Pods.
func (w *world) application(claims ...string) {
	w.T.Helper()
	w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"a": "b"}})
	w.Create(&v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: v1alpha1.ApplicationSpec{
			Type: "db", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Components: []v1alpha1.ApplicationComponent{{Group: "apps", Kind: "StatefulSet"}},
		},
	})
	w.Create(&v1alpha1.StatefulApplication{
		ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: "db"},
	})
	template := volumes.Pod("", "", claims...)
	template.Spec.Volumes = nil
	template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Labels: map[string]string{"app": "db"}},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "db", Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}}, Spec: template.Spec},
		},
	}
	for _, claim := range claims {
		c := volumes.Claim("", claim, volumes.ImmediateClass)
		c.Labels = map[string]string{"volume": claim}
		set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, *c)
	}
	w.Create(set)
	w.awaitRunning("db-0")
	w.action("lock", "echo lock >>data/log", "")
	w.action("unlock", "echo unlock >>data/log", "")
}

func (w *world) awaitRunning(name string) *corev1.Pod {
	w.T.Helper()
	pod := &corev1.Pod{}
	require.True(w.T, w.Eventually(func() bool {
		return w.Client.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, pod) == nil &&
			pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero()
	}), "Pod %s does not run: %+v", name, pod.Status)
	return pod
}

// action creates a HookAction that runs a script, for up to 20s.
func (w *world) action(name, script string, onError v1alpha1.HookErrorPolicy) {
	w.T.Helper()
	_ = w.Client.Delete(w.T.Context(), &v1alpha1.HookAction{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}})
	w.Create(&v1alpha1.HookAction{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.HookActionSpec{
			Action:  v1alpha1.HookHandler{Exec: v1alpha1.ExecAction{Command: []string{"sh", "-c", script}}},
			Timeout: metav1.Duration{Duration: 20 * time.Second}, OnError: onError,
		},
	})
}

// take creates the class of the test, and a snapshot of that class.
func (w *world) take(edit ...func(*v1alpha1.ApplicationSnapshot)) *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	if w.class.UID == "" {
		w.Create(w.class)
	}
	return w.snapshot("before", edit...)
}

func (w *world) snapshot(name string, edit ...func(*v1alpha1.ApplicationSnapshot)) *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	s := &v1alpha1.ApplicationSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ApplicationSnapshotSpec{
			SnapshotClassName: w.Namespace,
			Source:            v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "db"},
		},
	}
	for _, e := range edit {
		e(s)
	}
	w.Create(s)
	return s
}

// The driver of the tests, and its class of groups.
const (
	driver     = csidriver.Name
	groupClass = volumes.GroupSnapshotClass
)

// awaitFailed waits until a snapshot has failed and cleaned up, and returns why.
func (w *world) awaitFailed(s *v1alpha1.ApplicationSnapshot) *v1alpha1.DataError {
	w.T.Helper()
	hub.Await(w.World, s, "not failed", func(s *v1alpha1.ApplicationSnapshot) bool {
		return s.Status.Phase == v1alpha1.SnapshotFailed && s.Status.CompletionTime != nil
	})
	require.True(w.T, meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.SnapshotFailedCondition))
	require.Equal(w.T, s.Status.Error.Message, hub.AwaitReason(w.World, s, s.Status.Error.Reason))
	return s.Status.Error
}

// awaitPhase waits until a snapshot is at a phase, or behind it.
func (w *world) awaitPhase(s *v1alpha1.ApplicationSnapshot, phase v1alpha1.SnapshotPhase) {
	w.T.Helper()
	hub.Await(w.World, s, "not "+string(phase), func(s *v1alpha1.ApplicationSnapshot) bool { return s.Status.Phase == phase })
}

// content returns the content that a snapshot is bound to.
func (w *world) content(s *v1alpha1.ApplicationSnapshot) *v1alpha1.ApplicationSnapshotContent {
	w.T.Helper()
	c := &v1alpha1.ApplicationSnapshotContent{}
	require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKey{Name: s.Status.BoundSnapshotContentName}, c))
	return c
}

// sh runs a script in a Pod and returns what it wrote, on one line.
func (w *world) sh(pod, script string) string {
	w.T.Helper()
	result, err := w.volumes.Exec(w.T.Context(), w.Namespace, pod, script)
	require.NoError(w.T, err)
	require.Zero(w.T, result.Code, result.Stderr)
	return strings.Join(strings.Fields(result.Stdout), " ")
}

// volumeSnapshots returns the names of those of the namespace that are not being deleted.
func (w *world) volumeSnapshots() []string {
	w.T.Helper()
	all := &snapshotv1.VolumeSnapshotList{}
	require.NoError(w.T, w.direct.List(w.T.Context(), all, client.InNamespace(w.Namespace)))
	var names []string
	for _, s := range all.Items {
		if s.DeletionTimestamp.IsZero() {
			names = append(names, s.Name)
		}
	}
	return names
}

// hooks returns how many ExecutionHooks there are in the namespace.
func (w *world) hooks() int {
	w.T.Helper()
	all := &v1alpha1.ExecutionHookList{}
	require.NoError(w.T, w.Client.List(w.T.Context(), all, client.InNamespace(w.Namespace)))
	return len(all.Items)
}

// stored returns how many Secrets and files hold definitions of a snapshot.
func (w *world) stored(s *v1alpha1.ApplicationSnapshot) int {
	w.T.Helper()
	secrets := &corev1.SecretList{}
	require.NoError(w.T, w.Client.List(w.T.Context(), secrets, client.InNamespace(hub.SystemNamespace),
		client.MatchingLabels{v1alpha1.SnapshotUIDLabel: string(s.UID)}))
	files, err := filepath.Glob(filepath.Join(shared.dir, string(s.UID), "*"))
	require.NoError(w.T, err)
	return len(secrets.Items) + len(files)
}

// read restores the snapshot of a claim, and returns what a script says of it.
func (w *world) read(content *v1alpha1.ApplicationSnapshotContent, claim, script string) string {
	w.T.Helper()
	w.Create(volumes.ClaimFrom(content.Spec.VolumeSnapshotRefs[claim].Name, w.Namespace, "restored-"+claim, volumes.ImmediateClass))
	pod := volumes.Pod(w.Namespace, "reader-"+claim, "restored-"+claim)
	w.Create(pod)
	w.awaitRunning(pod.Name)
	return w.sh(pod.Name, "cd restored-"+claim+" && "+script)
}

// set returns the StatefulSet of the application.
func (w *world) set() *appsv1.StatefulSet {
	w.T.Helper()
	set := &appsv1.StatefulSet{}
	require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "db"}, set))
	return set
}

// awaitEnding returns a Pod once it is being deleted.
func (w *world) awaitEnding(name string) *corev1.Pod {
	w.T.Helper()
	pod := &corev1.Pod{}
	require.True(w.T, w.Eventually(func() bool {
		return w.Client.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, pod) == nil && !pod.DeletionTimestamp.IsZero()
	}), "Pod %s is not deleted", name)
	return pod
}
