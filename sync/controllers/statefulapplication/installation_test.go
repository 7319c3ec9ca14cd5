package statefulapplication_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/applicationinstallation"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// store is a chart with a claim of its own, one of a StatefulSet, and a password that it generates once.
const store = `
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-keys}
{{- $old := lookup "v1" "Secret" .Release.Namespace (printf "%s-keys" .Release.Name) }}
data: {key: {{ if $old }}{{ $old.data.key }}{{ else }}{{ randAlphaNum 12 | b64enc }}{{ end }}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: {{ .Release.Name }}-assets}
spec: {accessModes: [ReadWriteOnce], storageClassName: files, resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: 1
  serviceName: {{ .Release.Name }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: main, image: main, env: [{name: GREETING, value: {{ .Values.greeting }}}], envFrom: [{secretRef: {name: {{ .Release.Name }}-keys}}],
         volumeMounts: [{name: data, mountPath: /data}, {name: assets, mountPath: /assets}]}
      volumes: [{name: assets, persistentVolumeClaim: {claimName: {{ .Release.Name }}-assets}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: files-first-consumer, resources: {requests: {storage: 1Mi}}}
`

// install runs the controller of installations, and installs the chart as `shop`, which writes.
func (w *world) install() *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(w.T, err)
	_, err = repo.Push("../../../examples/charts/web", func(c *chart.Chart) {
		c.Metadata.Name, c.Metadata.Version, c.Schema, c.Values = "store", "1.0.0", nil, map[string]any{"greeting": "hello"}
		c.Templates = []*chart.File{{Name: "templates/all.yaml", Data: []byte(store)}}
	})
	require.NoError(w.T, err)
	driver := hub.Start(w.T, w.cluster, func(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
		err := (&applicationinstallation.Reconciler{
			Hub: mgr.GetClient(), Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID, Git: s.Git, Charts: s.Charts, SystemNamespace: hub.SystemNamespace,
		}).SetupWithManager(ctx, mgr)
		s.Clusters.Ensure(types.NamespacedName{Namespace: hub.SystemNamespace, Name: "local"}, "local", nil)
		return err
	})
	w.T.Cleanup(driver.Stop)
	w.Create(&v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: v1alpha1.ApplicationDefinitionSpec{
		AllowLookup: true,
		Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: &v1alpha1.ApplicationTemplate{
			Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: repo.URL(), ChartName: "store", ChartVersion: "1.0.0"}},
		}}},
	}})
	inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1alpha1.ApplicationInstallationSpec{
		ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}, Values: &apiextensionsv1.JSON{Raw: []byte(`{"greeting":"welcome to shop"}`)},
	}}
	w.Create(inst)
	hub.AwaitReady(w.World, inst)
	w.awaitRunning("shop-0")
	w.sh("shop-0", "echo old >data/file; echo logo >assets/logo")
	return inst
}

// found takes a snapshot of what belongs to the application, as the controller of ApplicationSnapshots does.
func (w *world) found(name string) *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	finder := &contents.Finder{Reader: w.Client, Mapper: w.Client.RESTMapper()}
	found, err := finder.Find(w.T.Context(), w.Namespace, "shop")
	require.NoError(w.T, err)
	objects, refs := []*unstructured.Unstructured{found.Application}, map[string]v1alpha1.NamespacedReference{}
	for _, o := range found.Objects {
		objects = append(objects, o.Unstructured)
	}
	for _, c := range found.Claims {
		objects = append(objects, c.Unstructured)
		refs[c.GetName()] = w.cut(c.GetName(), name)
	}
	s, _ := w.capturedObjects(name, objects, refs)
	return s
}

func (w *world) key(secret string) string {
	w.T.Helper()
	found := &corev1.Secret{}
	require.True(w.T, w.Exists(found, secret))
	return string(found.Data["key"])
}

// S29, S85, S101: an application that an installation manages is cloned as one of the same version and values, which
// takes over the volumes, and what its chart has generated.
func TestRestore_installations(t *testing.T) {
	w := newWorld(t)
	class := w.class(nil)
	original := w.install()
	snapshot := w.found("before")
	w.sh("shop-0", "echo new >data/file")

	same, beside := clone("shop", class, snapshot), clone("copy", class, snapshot)
	same.Spec.ValueSubstitutionRules = nil
	beside.Spec.ValueSubstitutionRules[1] = v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionValue, Key: "greeting", OldValue: "shop", NewValue: "copy"}
	far := w.other()
	far.Create(same)
	w.Create(beside)
	for _, c := range []struct {
		*world
		app      *v1alpha1.StatefulApplication
		greeting string
	}{{far, same, "welcome to shop"}, {w, beside, "welcome to copy"}} {
		hub.AwaitReady(c.World, c.app)
		inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.app.Name}}
		hub.AwaitReady(c.World, inst)
		assert.Equal(t, original.Spec.ApplicationRef, inst.Spec.ApplicationRef)
		assert.JSONEq(t, `{"greeting":"`+c.greeting+`"}`, string(inst.Spec.Values.Raw))
		assert.EqualValues(t, 1, inst.Status.Release.Revision)
		c.awaitRunning(c.app.Name + "-0")
		assert.Equal(t, "old\nlogo\n", c.sh(c.app.Name+"-0", "cat data/file assets/logo"))
		assert.Equal(t, w.key("shop-keys"), c.key(c.app.Name+"-keys"), "the data is of use with the password that it was written with alone")
		pods := &corev1.Pod{}
		require.True(t, c.Exists(pods, c.app.Name+"-0"))
		assert.Equal(t, c.greeting, pods.Spec.Containers[0].Env[0].Value)

		require.NoError(t, c.Client.Delete(t.Context(), inst))
		c.AwaitGone(&v1alpha1.ApplicationInstallation{}, inst.Name)
		c.AwaitGone(&corev1.PersistentVolumeClaim{}, inst.Name+"-assets")
	}
	assert.Equal(t, "new\n", w.sh("shop-0", "cat data/file"))

	// One whose volumes would be left aside for empty ones is not installed.
	lost := clone("lost", class, snapshot)
	lost.Spec.ValueSubstitutionRules[0].NewValue = "mislaid"
	w.Create(lost)
	inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "lost"}}
	w.AwaitThere(inst, "lost")
	message := hub.AwaitReason(w.World, inst, v1alpha1.RestoredClaimsUnusedReason)
	assert.Contains(t, message, "it would not use PersistentVolumeClaim data-mislaid-0, PersistentVolumeClaim mislaid-assets, restored for it")
	assert.False(t, w.Exists(&corev1.PersistentVolumeClaim{}, "lost-assets"))
	hub.Await(w.World, lost, "it says what it waits for", func(a *v1alpha1.StatefulApplication) bool {
		return strings.Contains(conditions.GetMessage(a, v1alpha1.ReadyCondition), message)
	})
	require.NoError(t, client.IgnoreNotFound(w.Client.Delete(t.Context(), lost)))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "lost")
	w.AwaitGone(&corev1.PersistentVolumeClaim{}, "mislaid-assets")
}
