package apply_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// rolledBack is an owner with two ConfigMaps, web and side, and an ApplicationRollback that holds web and
// has changed it.
type rolledBack struct {
	*fixture
	objects []manifest.Object
	first   apply.Result
}

func newRolledBack(t *testing.T) *rolledBack {
	t.Helper()
	f := newFixture(t)
	require.NoError(t, f.cluster.InstallCRDs(t.Context(), "../../../charts/waybill/crds/apps.waybill.dev_applicationrollbacks.yaml"))
	w := &rolledBack{fixture: f, objects: []manifest.Object{configMap(t, "web", "new"), configMap(t, "side", "one")}}
	w.first = f.mustApply(nil, w.objects...)
	w.rollback("back", v1alpha1.RollbackCompleted, "web")
	w.mark("web", f.namespace+"/back")
	f.awaitNotice()
	return w
}

func (f *fixture) rollbacks() dynamic.ResourceInterface {
	return f.admin.dynamic.Resource(v1alpha1.GroupVersion.WithResource("applicationrollbacks")).Namespace(f.namespace)
}

// rollback writes an ApplicationRollback, and its status as the controller does.
func (f *fixture) rollback(name string, phase v1alpha1.RollbackPhase, held ...string) {
	f.t.Helper()
	r := &v1alpha1.ApplicationRollback{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.APIVersion, r.Kind = v1alpha1.GroupVersion.String(), v1alpha1.ApplicationRollbackKind
	r.Spec = v1alpha1.ApplicationRollbackSpec{
		SnapshotClassName: "any", ApplicationName: "shop",
		Source: v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: "before"}},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	require.NoError(f.t, err)
	created, err := f.rollbacks().Create(f.t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	require.NoError(f.t, err)
	f.setPhase(created.GetName(), phase, held...)
}

func (f *fixture) setPhase(name string, phase v1alpha1.RollbackPhase, held ...string) {
	f.t.Helper()
	status := v1alpha1.ApplicationRollbackStatus{Phase: phase}
	for _, one := range held {
		ref := v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: f.namespace, Name: one}
		status.Held = append(status.Held, v1alpha1.HeldObject{ObjectReference: ref})
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	require.NoError(f.t, err)
	_, err = f.rollbacks().Patch(f.t.Context(), name, mergePatch, patch, metav1.PatchOptions{}, "status")
	require.NoError(f.t, err)
}

// mark sets the annotation that names who holds an object, as any user may who may edit it, along with
// other content.
func (f *fixture) mark(name, by string) {
	f.t.Helper()
	f.edit("configmaps", name, `{"metadata":{"annotations":{"apps.waybill.dev/held-by":"`+by+`"}},"data":{"key":"old"}}`)
}

// again applies with what the last result has to be remembered.
func (w *rolledBack) again(last apply.Result, objects ...manifest.Object) apply.Result {
	w.t.Helper()
	request := w.request(last.Inventory, objects...)
	request.Held = last.Held
	result := w.Apply(w.t.Context(), request)
	requireClean(w.t, result)
	return result
}

const mergeNull = `{"metadata":{"annotations":{"apps.waybill.dev/held-by":null}}}`

// C65: git does not undo a rollback.
func TestHold_objectStaysAsItIs(t *testing.T) {
	w := newRolledBack(t)
	w.requests.take()
	held := w.again(w.first, w.objects...)
	for _, request := range w.requests.take() {
		assert.Contains(t, request, "/applicationrollbacks", "no request about the held object")
	}
	assert.Equal(t, "old", w.value("web"))
	require.Len(t, held.Held, 1)
	assert.Equal(t, "back", held.Held[0].Rollback)
	assert.True(t, held.Held[0].Holds())
	assert.False(t, held.Unseen, "the end of a rollback is an event")

	w.edit("configmaps", "side", `{"data":{"key":"edited"}}`)
	w.awaitNotice()
	held = w.again(held, w.objects...)
	assert.Equal(t, "one", w.value("side"), "others are corrected")
	assert.Equal(t, "old", w.value("web"))

	w.restart()
	held = w.again(held, w.objects...)
	assert.Equal(t, "old", w.value("web"), "a restart keeps the hold")

	w.edit("configmaps", "web", mergeNull)
	w.awaitNotice()
	released := w.again(held, w.objects...)
	assert.Equal(t, "new", w.value("web"), "the hold was released")
	assert.Empty(t, released.Held)
}

// C65
func TestHold_endsWhenSomethingElseIsWanted(t *testing.T) {
	for name, restarts := range map[string]bool{"in the same process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			w := newRolledBack(t)
			held := w.again(w.first, w.objects...)
			if restarts {
				w.restart()
			}
			w.objects[0] = configMap(t, "web", "newer")
			taken := w.again(held, w.objects...)
			assert.Equal(t, "newer", w.value("web"))
			require.Len(t, taken.Held, 1, "it still carries the mark")
			assert.False(t, taken.Held[0].Holds())

			w.objects[0] = configMap(t, "web", "new")
			taken = w.again(taken, w.objects...)
			assert.Equal(t, "new", w.value("web"), "what was wanted then is not held once more")
			w.restart()
			w.edit("configmaps", "web", `{"data":{"key":"edited"}}`)
			w.again(taken, w.objects...)
			assert.Equal(t, "new", w.value("web"), "nor after a restart")
		})
	}
}

// C65: a commit that arrives in the middle of a rollback waits for its end.
func TestHold_rollbackUnderWayIsNotInterrupted(t *testing.T) {
	w := newRolledBack(t)
	w.setPhase("back", v1alpha1.RollbackSwapping, "web")
	newer := []manifest.Object{configMap(t, "web", "newer"), w.objects[1]}
	held := w.again(w.first, newer...)
	assert.Equal(t, "old", w.value("web"))

	pruning := w.request(held.Inventory, w.objects[1])
	pruning.Held = held.Held
	gone := w.Apply(t.Context(), pruning)
	assert.Len(t, gone.Waiting, 1)
	assert.False(t, gone.Unseen)
	assert.Equal(t, "old", w.value("web"), "nor is it deleted")

	w.delete("configmaps", "web")
	w.awaitNotice()
	held = w.again(held, newer...)
	assert.Nil(t, w.live("configmaps", "web"), "what the rollback deletes, it creates again")

	w.setPhase("back", v1alpha1.RollbackCompleted, "web")
	w.awaitNotice()
	seen, known := w.Observe(w.owner)
	assert.True(t, known)
	assert.False(t, seen.Settled, "there is something to do")
	w.again(held, newer...)
	assert.Equal(t, "newer", w.value("web"))
}

// C22, C65: what a snapshot has scaled to zero stays so until it has its replicas back, whatever is wanted meanwhile.
func TestHold_snapshot(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, f.cluster.InstallCRDs(t.Context(), "../../../charts/waybill/crds/apps.waybill.dev_applicationsnapshots.yaml"))
	w := &rolledBack{fixture: f, objects: []manifest.Object{configMap(t, "web", "new")}}
	w.first = f.mustApply(nil, w.objects...)
	snapshots := f.admin.dynamic.Resource(v1alpha1.GroupVersion.WithResource("applicationsnapshots")).Namespace(f.namespace)
	content := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationSnapshotKind, "metadata": map[string]any{"name": "cold"},
		"spec": map[string]any{"snapshotClassName": "any", "source": map[string]any{"type": "Application", "applicationName": "shop"}},
	}
	_, err := snapshots.Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	require.NoError(t, err)
	holding := func(patch string) {
		t.Helper()
		_, err := snapshots.Patch(t.Context(), "cold", mergePatch, []byte(`{"status":{"held":`+patch+`}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
	holding(`[{"kind":"ConfigMap","namespace":"` + f.namespace + `","name":"web"}]`)
	w.mark("web", f.namespace+"/snapshot:cold")
	f.awaitNotice()
	held := w.again(w.first, w.objects...)
	assert.Equal(t, "old", w.value("web"))
	require.Len(t, held.Held, 1)
	assert.Equal(t, "snapshot:cold", held.Held[0].Rollback)
	assert.False(t, held.Unseen)
	newer := []manifest.Object{configMap(t, "web", "newer")}
	held = w.again(held, newer...)
	assert.Equal(t, "old", w.value("web"), "also if something else is wanted")

	holding(`null`)
	f.awaitNotice()
	released := w.again(held, newer...)
	assert.Equal(t, "newer", w.value("web"), "no longer than the snapshot says, also where the mark stays")
	w.edit("configmaps", "web", mergeNull)
	f.awaitNotice()
	assert.Empty(t, w.again(released, newer...).Held)
}

// C65: what is no longer wanted at all is something else.
func TestHold_endsWithTheManifest(t *testing.T) {
	w := newRolledBack(t)
	held := w.again(w.first, w.objects...)
	request := w.request(held.Inventory, w.objects[1])
	request.Held = held.Held
	w.until(request, clean)
	assert.Nil(t, w.live("configmaps", "web"))
}

// C65: a user who may edit an object may write the annotation, and not the status of a rollback.
func TestHold_isNotForged(t *testing.T) {
	cases := map[string]struct {
		reason string
		by     func(f *fixture) string
		asks   bool
	}{
		"none": {"there is no such rollback", func(f *fixture) string { return f.namespace + "/other" }, true},
		"unlisted": {"its status does not list the object", func(f *fixture) string {
			f.rollback("empty", v1alpha1.RollbackCompleted)
			return f.namespace + "/empty"
		}, true},
		"elsewhere": {"a rollback holds nothing of other namespaces", func(f *fixture) string { return "elsewhere/back" }, false},
		"malformed": {"it names nothing", func(*fixture) string { return "a/b/c" }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			require.NoError(t, f.cluster.InstallCRDs(t.Context(), "../../../charts/waybill/crds/apps.waybill.dev_applicationrollbacks.yaml"))
			first := f.mustApply(nil, configMap(t, "web", "new"))
			f.mark("web", c.by(f))
			f.awaitNotice()
			f.requests.take()
			result := f.mustApply(first.Inventory, configMap(t, "web", "new"))
			assert.Equal(t, "new", f.value("web"), c.reason)
			assert.Empty(t, result.Held)
			if want := 1; c.asks {
				assert.Len(t, f.requests.take(), want+1)
			} else {
				assert.Len(t, f.requests.take(), want, "no rollback is asked for")
			}
			seen, _ := f.Observe(f.owner)
			assert.True(t, seen.Settled)
		})
	}
}

// C65: who may edit an object that others deliver could keep it from being corrected by holding it. Where
// that must not be, the manifest says so; the live object has no say in it.
func TestHold_isDisabledByTheManifest(t *testing.T) {
	for name, c := range map[string]struct {
		inManifest bool
		want       string
	}{
		"by the manifest":    {true, "new"},
		"by the live object": {false, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			require.NoError(t, f.cluster.InstallCRDs(t.Context(), "../../../charts/waybill/crds/apps.waybill.dev_applicationrollbacks.yaml"))
			object := configMap(t, "web", "new")
			if c.inManifest {
				object.SetAnnotations(map[string]string{v1alpha1.HoldAnnotation: "disabled"})
			}
			first := f.mustApply(nil, object)
			f.rollback("back", v1alpha1.RollbackCompleted, "web")
			f.edit("configmaps", "web", `{"metadata":{"annotations":{"apps.waybill.dev/hold":"disabled","apps.waybill.dev/held-by":"`+f.namespace+`/back"}},"data":{"key":"old"}}`)
			f.awaitNotice()
			f.mustApply(first.Inventory, object)
			assert.Equal(t, c.want, f.value("web"))
		})
	}
}
