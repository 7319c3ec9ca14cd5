package statefulapplication_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/statefulapplication"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

// world is that of one test: a namespace on the cluster that all share, on which one controller runs.
type world struct {
	*hub.World
	cluster *env.Cluster
	volumes *volumes.Volumes
}

var shared struct {
	sync.Mutex
	process *hub.Process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "cluster", Pods: true, CRDs: []string{"../../../charts/waybill/crds", volumes.CRDs(t)}})
	w := &world{hub.NewWorld(t, c), c, volumes.On(t, c)}
	scheme := hub.NewScheme(t)
	require.NoError(t, snapshotv1.AddToScheme(scheme))
	direct, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	w.Client = direct
	shared.Lock()
	defer shared.Unlock()
	if shared.process == nil {
		shared.process = w.start()
	}
	return w
}

// start runs a controller.
func (w *world) start() *hub.Process {
	return hub.Start(w.T, w.cluster, func(ctx context.Context, mgr ctrl.Manager, _ hub.Shared) error {
		return (&statefulapplication.Reconciler{
			Client: mortalClient{mgr.GetClient()}, Recorder: mgr.GetEventRecorder("statefulapplication"), Reader: mgr.GetAPIReader(),
			Definitions: &metadata.Store{Client: mgr.GetClient(), SystemNamespace: hub.SystemNamespace, Room: metadata.NewRoom(1)},
		}).SetupWithManager(ctx, mgr)
	})
}

// restart ends the controller, calls between, and runs another one.
func (w *world) restart(between func()) {
	shared.Lock()
	defer shared.Unlock()
	shared.process.Stop()
	between()
	shared.process = w.start()
}

// other returns the world of another namespace of the same test.
func (w *world) other() *world {
	o := *w.World
	o.Namespace = w.cluster.Namespace(w.T)
	return &world{&o, w.cluster, w.volumes}
}

// class creates a class for the test, and returns its name.
func (w *world) class(mapping map[string]string) string { return w.named("class", mapping) }

func (w *world) named(name string, mapping map[string]string) string {
	c := &v1alpha1.StatefulApplicationClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name}, Handler: v1alpha1.DataHandler, StorageClassMapping: mapping,
	}
	w.Create(c)
	return c.Name
}

// shop is an application with two volumes: that of a StatefulSet and one on its own.
const shop = `
- {apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: shop}, spec: {type: Shop, ownership: Observe, selector: {matchLabels: {app: shop}}}}
- {apiVersion: v1, kind: Secret, metadata: {name: shop-keys, labels: {app: shop}}, stringData: {key: s3cr3t}}
- {apiVersion: v1, kind: Service, metadata: {name: shop, labels: {app: shop}}, spec: {selector: {app: shop}, ports: [{port: 80}]}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: shop-assets, labels: {app: shop}}
  spec: {accessModes: [ReadWriteOnce], storageClassName: files, resources: {requests: {storage: 1Mi}}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: shop, labels: {app: shop}}
  spec:
    replicas: 1
    serviceName: shop
    selector: {matchLabels: {app: shop}}
    template:
      metadata: {labels: {app: shop}}
      spec:
        terminationGracePeriodSeconds: 0
        containers:
        - {name: main, image: main, volumeMounts: [{name: data, mountPath: /data}, {name: assets, mountPath: /assets}], envFrom: [{secretRef: {name: shop-keys}}]}
        volumes: [{name: assets, persistentVolumeClaim: {claimName: shop-assets}}]
    volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], storageClassName: files-first-consumer, resources: {requests: {storage: 1Mi}}}
`

// run creates the application shop, and has it write.
func (w *world) run() {
	var list []map[string]any
	require.NoError(w.T, yaml.Unmarshal([]byte(shop), &list))
	for _, content := range list {
		w.Create(&unstructured.Unstructured{Object: content})
	}
	w.awaitRunning("shop-0")
	w.sh("shop-0", "echo old >data/file; echo logo >assets/logo")
}

func (w *world) awaitRunning(pod string) {
	w.T.Helper()
	p := &corev1.Pod{}
	require.True(w.T, w.Eventually(func() bool {
		return w.Client.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: pod}, p) == nil && p.Status.Phase == corev1.PodRunning
	}), "Pod %s does not run: %+v", pod, p.Status)
}

// sh runs a script in a Pod, which must succeed, and returns what it wrote.
func (w *world) sh(pod, script string) string {
	w.T.Helper()
	result, err := w.volumes.Exec(w.T.Context(), w.Namespace, pod, script)
	require.NoError(w.T, err)
	require.Zero(w.T, result.Code, result.Stderr)
	return result.Stdout
}

// stored are the objects of shop whose definitions a snapshot holds.
func (w *world) stored() []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, ref := range [][3]string{
		{"apps.waybill.dev/v1alpha1", "Application", "shop"}, {"v1", "Secret", "shop-keys"}, {"v1", "Service", "shop"},
		{"v1", "PersistentVolumeClaim", "shop-assets"}, {"v1", "PersistentVolumeClaim", "data-shop-0"}, {"apps/v1", "StatefulSet", "shop"},
	} {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(ref[0])
		o.SetKind(ref[1])
		require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: ref[2]}, o))
		delete(o.Object, "status")
		o.SetManagedFields(nil)
		list = append(list, o)
	}
	return list
}

// snapshot takes a snapshot of the application, as the controller of ApplicationSnapshots does.
func (w *world) snapshot(name string) *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	refs := map[string]v1alpha1.NamespacedReference{}
	for _, claim := range []string{"data-shop-0", "shop-assets"} {
		refs[claim] = w.cut(claim, name)
	}
	s, _ := w.capturedObjects(name, w.stored(), refs)
	return s
}

// bind has a snapshot say that it is ready.
func (w *world) bind(s *v1alpha1.ApplicationSnapshot, content string) {
	before := s.DeepCopy()
	s.Status.Phase, s.Status.BoundSnapshotContentName, s.Status.CreationTime = v1alpha1.SnapshotReady, content, ptr.To(metav1.Now())
	require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), s, client.MergeFrom(before)))
}

// cut takes a VolumeSnapshot of a claim.
func (w *world) cut(claim, snapshot string) v1alpha1.NamespacedReference {
	v := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s", snapshot, claim)},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}},
	}
	w.Create(v)
	require.True(w.T, w.Eventually(func() bool {
		return w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(v), v) == nil && v.Status != nil && ptr.Deref(v.Status.ReadyToUse, false)
	}), "VolumeSnapshot %s is not ready", v.Name)
	return v1alpha1.NamespacedReference{Namespace: w.Namespace, Name: v.Name, UID: string(v.UID)}
}

// clone returns an application that is restored from a snapshot, with everything called something else.
func clone(name, class string, from *v1alpha1.ApplicationSnapshot) *v1alpha1.StatefulApplication {
	return &v1alpha1.StatefulApplication{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.StatefulApplicationSpec{
			ApplicationClassName: class,
			Source: &v1alpha1.DataSource{
				Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Namespace: from.Namespace, Name: from.Name},
			},
			ValueSubstitutionRules: []v1alpha1.ValueSubstitutionRule{
				{Type: v1alpha1.SubstitutionName, OldValue: "shop", NewValue: name},
				{Type: v1alpha1.SubstitutionLabel, Key: "app", OldValue: "shop", NewValue: name},
			},
		},
	}
}

// awaitPhase waits until a restore is at a phase.
func (w *world) awaitPhase(a *v1alpha1.StatefulApplication, phase v1alpha1.RestorePhase) {
	w.T.Helper()
	hub.Await(w.World, a, "not at phase "+string(phase), func(a *v1alpha1.StatefulApplication) bool {
		return a.Status.Restore != nil && a.Status.Restore.Phase == phase
	})
}
