package volumes_test

import (
	"slices"
	"testing"
	"time"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/volumes"
)

func TestMain(m *testing.M) { env.Main(m) }

const often = 20 * time.Millisecond

// world is one test's namespace on the package's cluster.
type world struct {
	*testing.T
	*volumes.Volumes
	client.Client

	cluster   *env.Cluster
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "volumes", Pods: true, CRDs: []string{volumes.CRDs(t)}})
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, snapshotv1.AddToScheme, groupsnapshotv1.AddToScheme} {
		require.NoError(t, add(types))
	}
	direct, err := client.New(c.RESTConfig(), client.Options{Scheme: types})
	require.NoError(t, err)
	return &world{T: t, Volumes: volumes.On(t, c), Client: direct, cluster: c, namespace: c.Namespace(t)}
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		require.NoError(w, w.Create(w.Context(), o))
	}
}

// await reads an object until it is as it should be.
func (w *world) await(o client.Object, is func() bool, what string) {
	w.Helper()
	require.Eventually(w, func() bool {
		return w.Get(w.Context(), client.ObjectKeyFromObject(o), o) == nil && is()
	}, env.Limit, often, "%s %s %s: %+v", o.GetName(), "is", what, o)
}

func (w *world) awaitBound(claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	w.await(claim, func() bool { return claim.Status.Phase == corev1.ClaimBound }, "bound")
}

func (w *world) awaitReady(s *snapshotv1.VolumeSnapshot) {
	w.Helper()
	w.await(s, func() bool { return s.Status != nil && ptr.Deref(s.Status.ReadyToUse, false) }, "ready to use")
}

// awaitReadySnapshots waits for that many snapshots in the namespace to be ready, and returns them.
func (w *world) awaitReadySnapshots(want int) []snapshotv1.VolumeSnapshot {
	w.Helper()
	all := &snapshotv1.VolumeSnapshotList{}
	require.Eventually(w, func() bool {
		if w.List(w.Context(), all, client.InNamespace(w.namespace)) != nil {
			return false
		}
		unready := slices.ContainsFunc(all.Items, func(s snapshotv1.VolumeSnapshot) bool {
			return s.Status == nil || !ptr.Deref(s.Status.ReadyToUse, false)
		})
		return len(all.Items) == want && !unready
	}, env.Limit, often, "%d snapshots are ready to use: %+v", want, all)
	return all.Items
}

// run starts a Pod with the claims, and returns when it runs.
func (w *world) run(name string, claims ...string) *corev1.Pod {
	w.Helper()
	pod := volumes.Pod(w.namespace, name, claims...)
	w.create(pod)
	w.await(pod, func() bool { return pod.Status.Phase == corev1.PodRunning }, "running")
	return pod
}

// sh runs a script in a Pod, which must succeed, and returns what it wrote.
func (w *world) sh(pod, script string) string {
	w.Helper()
	result, err := w.Exec(w.Context(), w.namespace, pod, script)
	require.NoError(w, err)
	require.Zero(w, result.Code, result.Stderr)
	return result.Stdout
}

func (w *world) snapshotOf(claim, name string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}},
	}
}
