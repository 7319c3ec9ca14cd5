package statefulapplication_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// plain is an application whose claim was not snapshotted.
const plain = `
- {apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: shop}, spec: {type: Shop, ownership: Observe, selector: {matchLabels: {app: shop}}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: shop-conf}, data: {a: b}}
- {apiVersion: v1, kind: Secret, metadata: {name: shop-keys}, data: {a: Yg==}}
- {apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {selector: {app: shop}, clusterIP: 10.0.0.9, ports: [{port: 80}]}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: shop-cache}
  spec: {accessModes: [ReadWriteOnce], storageClassName: files-first-consumer, resources: {requests: {storage: 1Mi}}}
`

// captured returns a snapshot of definitions, without volumes unless refs has them.
func (w *world) captured(name, definitions string, refs map[string]v1alpha1.NamespacedReference) (*v1alpha1.ApplicationSnapshot, *v1alpha1.ApplicationSnapshotContent) {
	w.T.Helper()
	var list []map[string]any
	require.NoError(w.T, yaml.Unmarshal([]byte(definitions), &list))
	var objects []*unstructured.Unstructured
	for _, content := range list {
		o := &unstructured.Unstructured{Object: content}
		o.SetNamespace(w.Namespace)
		objects = append(objects, o)
	}
	return w.capturedObjects(name, objects, refs)
}

func (w *world) capturedObjects(name string, objects []*unstructured.Unstructured, refs map[string]v1alpha1.NamespacedReference) (*v1alpha1.ApplicationSnapshot, *v1alpha1.ApplicationSnapshotContent) {
	w.T.Helper()
	s := &v1alpha1.ApplicationSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ApplicationSnapshotSpec{
			SnapshotClassName: "any", Source: v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "shop"},
		},
	}
	w.Create(s)
	store := &metadata.Store{Client: w.Client, SystemNamespace: hub.SystemNamespace}
	handle, err := store.Save(w.T.Context(), s.UID, v1alpha1.MetadataObject, objects)
	require.NoError(w.T, err)
	content := &v1alpha1.ApplicationSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name},
		Spec: v1alpha1.ApplicationSnapshotContentSpec{
			SnapshotClassName: "any", MetadataHandle: &handle, VolumeSnapshotRefs: refs,
			SnapshotRef: &v1alpha1.NamespacedReference{Namespace: w.Namespace, Name: name, UID: string(s.UID)},
		},
	}
	w.Create(content)
	w.bind(s, content.Name)
	return s, content
}

// limit has a quota refuse objects of one kind, until lift is called.
func (w *world) limit(resources corev1.ResourceName) (lift func()) {
	w.T.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{resources: resource.MustParse("0")}},
	}
	w.Create(quota)
	require.True(w.T, w.Eventually(func() bool {
		return w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(quota), quota) == nil && len(quota.Status.Hard) > 0
	}))
	return func() { require.NoError(w.T, client.IgnoreNotFound(w.Client.Delete(w.T.Context(), quota))) }
}

// S97, S98: each refusal is listed, what is not refused is created, and a restore that another process
// had begun is finished.
func TestRestore_refusals(t *testing.T) {
	w := newWorld(t)
	class := w.class(nil)
	snapshot, _ := w.captured("before", plain, nil)
	cases := map[string]struct {
		reason   string
		resource corev1.ResourceName
		phase    v1alpha1.RestorePhase
		kind     string
		there    []client.Object
		missing  client.Object
	}{
		"claims": {
			"objects wait for all claims", "persistentvolumeclaims", v1alpha1.RestoreClaims, "PersistentVolumeClaim",
			nil, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "claims-conf"}},
		},
		"services": {
			"the Application comes when all others are there", "services", v1alpha1.RestoreObjects, "Service",
			[]client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "services-conf"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "services-keys"}}},
			&v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "services"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := w.other()
			w.T = t
			lift := w.limit(tc.resource)
			a := clone(name, class, snapshot)
			w.Create(a)

			message := hub.AwaitReason(w.World, a, v1alpha1.RestoreRefusedReason)
			assert.Contains(t, message, "exceeded quota: small", tc.reason)
			assert.Equal(t, tc.phase, a.Status.Restore.Phase)
			require.Len(t, a.Status.Restore.Problems, 1)
			assert.Equal(t, tc.kind, a.Status.Restore.Problems[0].Kind)
			for _, o := range tc.there {
				assert.True(t, w.Exists(o, o.GetName()))
			}
			assert.False(t, w.Exists(tc.missing, tc.missing.GetName()), tc.reason)

			w.restart(lift)
			hub.AwaitReady(w.World, a)
			assert.Equal(t, v1alpha1.RestoreCompleted, a.Status.Restore.Phase)
			assert.Empty(t, a.Status.Restore.Problems)
			assert.True(t, w.Exists(tc.missing, tc.missing.GetName()))
			hub.Await(w.World, a, "it still has its finalizer", func(a *v1alpha1.StatefulApplication) bool { return len(a.Finalizers) == 0 })
		})
	}
}

// S81, S98: nothing is overwritten, and nothing is created as long as something would be.
func TestRestore_alreadyExists(t *testing.T) {
	w := newWorld(t)
	snapshot, _ := w.captured("before", plain, nil)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "two-keys"}, StringData: map[string]string{"a": "mine"}}
	w.Create(foreign)
	a := clone("two", w.class(nil), snapshot)
	w.Create(a)

	message := hub.AwaitReason(w.World, a, v1alpha1.AlreadyExistsReason)
	assert.Contains(t, message, "nothing was created, because Secret "+w.Namespace+"/two-keys exists")
	require.Len(t, a.Status.Restore.Problems, 1)
	assert.Equal(t, "two-keys", a.Status.Restore.Problems[0].Name)
	assert.Equal(t, v1alpha1.RestorePending, a.Status.Restore.Phase)
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "two-conf"))
	assert.False(t, w.Exists(&corev1.PersistentVolumeClaim{}, "two-cache"))

	// The rules can still be mended.
	hub.Change(w.World, a, func(a *v1alpha1.StatefulApplication) { a.Spec.ValueSubstitutionRules[0].NewValue = "three" })
	hub.AwaitReady(w.World, a)
	assert.True(t, w.Exists(&corev1.Secret{}, "three-keys"))
	require.True(t, w.Exists(foreign, "two-keys"))
	assert.Equal(t, "mine", string(foreign.Data["a"]))
	assert.True(t, w.Exists(&v1alpha1.Application{}, "two"), "S10: the Application is named as the StatefulApplication")

	// S15: it is not done again.
	require.NoError(t, w.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "three-conf"}}))
	hub.Reconcile(w.World, a)
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "three-conf"))
}

// S96: altered definitions are not restored, and a restore that has begun is given up then; what it has
// created goes with it, and nothing else.
func TestRestore_damagedDefinitions(t *testing.T) {
	w := newWorld(t)
	class := w.class(nil)
	snapshot, content := w.captured("before", plain, nil)
	lift := w.limit("services")
	defer lift()
	begun := clone("begun", class, snapshot)
	w.Create(begun)
	hub.AwaitReason(w.World, begun, v1alpha1.RestoreRefusedReason)
	w.awaitPhase(begun, v1alpha1.RestoreObjects)

	stored := &corev1.Secret{}
	name := content.Spec.MetadataHandle.Object.Name + "-0"
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: hub.SystemNamespace, Name: name}, stored))
	for key, value := range stored.Data {
		value[len(value)/2] ^= 1
		stored.Data[key] = value
	}
	require.NoError(t, w.Client.Delete(t.Context(), stored))
	stored.ResourceVersion, stored.UID = "", ""
	require.NoError(t, w.Client.Create(t.Context(), stored))

	fresh := clone("fresh", class, snapshot)
	w.Create(fresh)
	assert.Contains(t, hub.AwaitReason(w.World, fresh, v1alpha1.SnapshotDamagedReason), "damaged")
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "fresh-conf"))

	message := hub.AwaitReason(w.World, begun, v1alpha1.SnapshotDamagedReason)
	assert.Contains(t, message, "delete the StatefulApplication to remove what it has created")
	assert.Equal(t, v1alpha1.RestoreFailed, begun.Status.Restore.Phase)
	taken := &corev1.ConfigMap{}
	require.True(t, w.Exists(taken, "begun-conf"))
	delete(taken.Annotations, v1alpha1.RestoredByAnnotation)
	require.NoError(t, w.Client.Update(t.Context(), taken))

	require.NoError(t, w.Client.Delete(t.Context(), begun))
	w.AwaitGone(&v1alpha1.StatefulApplication{}, "begun")
	w.AwaitGone(&corev1.PersistentVolumeClaim{}, "begun-cache")
	assert.False(t, w.Exists(&corev1.Secret{}, "begun-keys"))
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "begun-conf"), "a user has taken it over")
}

// A cluster without VolumeSnapshots restores what needs none, and says what the rest needs.
func TestRestore_withoutVolumeSnapshots(t *testing.T) {
	c := env.Shared(t, env.Options{Name: "bare", NoControllers: true, CRDs: []string{"../../../charts/waybill/crds"}})
	w := &world{hub.NewWorld(t, c), c, nil}
	defer w.start().Stop()
	class := w.class(nil)
	unclassed := strings.Replace(plain, "storageClassName: files-first-consumer, ", "", 1)

	without, _ := w.captured("without", unclassed, nil)
	one := clone("one", class, without)
	w.Create(one)
	hub.AwaitReady(w.World, one)

	with, _ := w.captured("with", unclassed, map[string]v1alpha1.NamespacedReference{"shop-cache": {Namespace: w.Namespace, Name: "gone"}})
	two := clone("two", class, with)
	w.Create(two)
	assert.Contains(t, hub.AwaitReason(w.World, two, v1alpha1.VolumeSnapshotMissingReason), "the cluster does not serve VolumeSnapshots: install")
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "two-conf"))
}
