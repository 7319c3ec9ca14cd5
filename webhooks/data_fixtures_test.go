package webhooks_test

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

// dataSpecs are the least that each kind of document S needs. Classes have no spec: their fields are
// those of the object.
var dataSpecs = map[string]string{
	v1alpha1.StatefulApplicationKind:        `{spec: {applicationName: mongo}}`,
	v1alpha1.StatefulApplicationClassKind:   `{handler: data.waybill.dev}`,
	v1alpha1.ApplicationSnapshotKind:        `{spec: {snapshotClassName: mongo, source: {type: Application, applicationName: mongo}}}`,
	v1alpha1.ApplicationSnapshotClassKind:   `{snapshotter: data.waybill.dev}`,
	v1alpha1.ApplicationSnapshotContentKind: `{spec: {snapshotClassName: mongo}}`,
	v1alpha1.ApplicationRollbackKind: `{spec: {snapshotClassName: mongo, applicationName: mongo,
		source: {type: Snapshot, snapshotRef: {name: monday}}}}`,
}

// dataObject is the least object of a kind, with some of its top-level fields replaced, as YAML.
func dataObject(t *testing.T, kind, namespace, fields string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	for _, text := range []string{dataSpecs[kind], fields} {
		require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object), text)
	}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	if u.GetName() == "" {
		u.SetGenerateName("mongo-")
	}
	switch kind {
	case v1alpha1.StatefulApplicationClassKind, v1alpha1.ApplicationSnapshotClassKind, v1alpha1.ApplicationSnapshotContentKind:
	default:
		u.SetNamespace(namespace)
	}
	return u
}

// changedTo replaces top-level fields of an object.
func changedTo(t *testing.T, u *unstructured.Unstructured, fields string) *unstructured.Unstructured {
	t.Helper()
	changed := u.DeepCopy()
	require.NoError(t, yaml.Unmarshal([]byte(fields), &changed.Object), fields)
	return changed
}

func newSnapshot(namespace, class string) *v1alpha1.ApplicationSnapshot {
	return &v1alpha1.ApplicationSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "monday"},
		Spec: v1alpha1.ApplicationSnapshotSpec{
			SnapshotClassName: class,
			Source:            v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "mongo"},
		},
	}
}

// newBound is a snapshot that is to be bound to a content.
func newBound(namespace, class, content string) *v1alpha1.ApplicationSnapshot {
	s := newSnapshot(namespace, class)
	s.Spec.Source, s.Spec.SnapshotContentName = v1alpha1.SnapshotSource{}, content
	return s
}

// class creates an ApplicationSnapshotClass, for this test.
func class(t *testing.T, admin client.Client, change func(*v1alpha1.ApplicationSnapshotClass)) *v1alpha1.ApplicationSnapshotClass {
	t.Helper()
	c := &v1alpha1.ApplicationSnapshotClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "mongo-"}, Snapshotter: v1alpha1.DataHandler}
	if change != nil {
		change(c)
	}
	require.NoError(t, admin.Create(t.Context(), c))
	t.Cleanup(func() { _ = admin.Delete(afterwards(t), c) })
	return c
}

func withHooks(c *v1alpha1.ApplicationSnapshotClass) {
	c.PreHooks = []v1alpha1.HookSpec{{Name: "lock", ActionName: "lock"}}
}

// readySnapshot creates the snapshot "monday" of a namespace, unless it is there, and makes it ready
// as its controller does.
func readySnapshot(t *testing.T, admin client.Client, namespace string, kinds ...string) *v1alpha1.ApplicationSnapshot {
	t.Helper()
	return makeReady(t, admin, newSnapshot(namespace, "mongo"), kinds...)
}

// definedSnapshot is a snapshot that holds an installation of the definition `web`.
func definedSnapshot(t *testing.T, admin client.Client, namespace string) {
	t.Helper()
	s := readySnapshot(t, admin, namespace, "applicationinstallations."+v1alpha1.Group)
	if s.UID == "" {
		return // it is there
	}
	content := &v1alpha1.ApplicationSnapshotContent{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Name: "snapcontent-" + string(s.UID)}, content))
	content.Status.Definition = "web"
	require.NoError(t, admin.Status().Update(t.Context(), content))
}

func makeReady(t *testing.T, admin client.Client, s *v1alpha1.ApplicationSnapshot, kinds ...string) *v1alpha1.ApplicationSnapshot {
	t.Helper()
	err := admin.Create(t.Context(), s)
	if apierrors.IsAlreadyExists(err) {
		return s
	}
	require.NoError(t, err)
	content := &v1alpha1.ApplicationSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-" + string(s.UID)},
		Spec: v1alpha1.ApplicationSnapshotContentSpec{SnapshotClassName: "mongo",
			SnapshotRef: &v1alpha1.NamespacedReference{Namespace: s.Namespace, Name: s.Name, UID: string(s.UID)}}}
	require.NoError(t, admin.Create(t.Context(), content))
	content.Status.Kinds = kinds
	require.NoError(t, admin.Status().Update(t.Context(), content))
	s.Status.Phase, s.Status.BoundSnapshotContentName = v1alpha1.SnapshotReady, content.Name
	require.NoError(t, admin.Status().Update(t.Context(), s))
	t.Cleanup(func() { _ = admin.Delete(afterwards(t), content) })
	return s
}

func newRestore(namespace, from string) *v1alpha1.StatefulApplication {
	return &v1alpha1.StatefulApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mongo"},
		Spec:       v1alpha1.StatefulApplicationSpec{Source: &v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Namespace: from, Name: "monday"}}},
	}
}

func newRollback(namespace, class string) *v1alpha1.ApplicationRollback {
	return &v1alpha1.ApplicationRollback{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "back"},
		Spec:       v1alpha1.ApplicationRollbackSpec{SnapshotClassName: class, ApplicationName: "mongo", Source: *newRestore(namespace, "").Spec.Source},
	}
}

// restorable makes the snapshot ready that an object restores, if it does.
func restorable(t *testing.T, admin client.Client, u *unstructured.Unstructured) {
	t.Helper()
	name, found, err := unstructured.NestedString(u.Object, "spec", "source", "snapshotRef", "name")
	require.NoError(t, err)
	if !found {
		return
	}
	namespace, _, _ := unstructured.NestedString(u.Object, "spec", "source", "snapshotRef", "namespace")
	s := newSnapshot(cmp.Or(namespace, u.GetNamespace()), "mongo")
	s.Name = name
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), namespaceOf(s.Namespace))))
	makeReady(t, admin, s, "services")
	t.Cleanup(func() { _ = admin.Delete(afterwards(t), s) })
}
