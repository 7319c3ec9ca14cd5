package contents_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/contents"
)

func inNamespace(text, namespace string) string {
	return strings.ReplaceAll(text, "NAMESPACE", namespace)
}

func patch(w *world, o *unstructured.Unstructured, text string) {
	w.T.Helper()
	require.NoError(w.T, w.Client.Patch(w.T.Context(), o, client.RawPatch(types.MergePatchType, []byte(text))))
}

const applications = `
{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: suite}, spec: {
  type: suite, selector: {matchLabels: {suite: shop}}, components: [{group: apps.waybill.dev, kind: Application}, {kind: ConfigMap}]}}
---
{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: part, labels: {suite: shop}}, spec: {
  type: part, selector: {matchLabels: {app: part}}, components: [{kind: ConfigMap}]}}
---
{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: greedy}, spec: {
  type: greedy, selector: {matchLabels: {greedy: "yes"}}, components: [{kind: ConfigMap}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: bare, labels: {app: part}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: injected, labels: {app: part}, annotations: {kubernetes.io/application: part, apps.waybill.dev/injected: part}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: chosen, labels: {app: part, greedy: "yes"}, annotations: {kubernetes.io/application: part}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: contested, labels: {app: part, greedy: "yes"}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: nobodys, labels: {app: part}, annotations: {kubernetes.io/application: ""}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: anothers, labels: {app: part}, annotations: {kubernetes.io/application: greedy}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: shared, labels: {suite: shop}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: leaving, labels: {suite: shop}, finalizers: [example.com/test]}}
`

// S85: whose a component is is decided as the Application controller decides it, and an Application
// comes with its own components.
func TestFind_components(t *testing.T) {
	w := newWorld(t)
	applied := w.apply(applications)
	leaving := applied[len(applied)-1]
	require.NoError(t, w.Client.Delete(t.Context(), leaving))
	defer patch(w, leaving, `{"metadata":{"finalizers":null}}`)

	found := w.find("suite")
	part := `: component of Application "part"`
	assert.Equal(t, []string{
		"ConfigMap bare" + part, "ConfigMap chosen" + part, "ConfigMap injected" + part,
		`ConfigMap shared: component of Application "suite"`,
		`Application part: component of Application "suite"`,
	}, objects(found))
	assert.Equal(t, []string{"ConfigMap leaving: it is being deleted"}, left(found))

	_, err := w.finder(w.Cluster.RESTConfig()).Find(t.Context(), w.Namespace, "none")
	assert.True(t, apierrors.IsNotFound(err))
	assert.ErrorContains(t, err, `get Application "none" in namespace "`+w.Namespace+`"`)
}

const installed = `
{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: shop, annotations: {apps.waybill.dev/owner: OWNER}}, spec: {
  type: shop, selector: {matchLabels: {apps.waybill.dev/release: shop}}, components: [{kind: Service, name: shop}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: shop, labels: {apps.waybill.dev/release: shop}, annotations: {apps.waybill.dev/owner: hub/ApplicationInstallation/NAMESPACE/shop}}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: values}}
---
{apiVersion: apps.waybill.dev/v1alpha1, kind: GitSync, metadata: {name: repo}, spec: {url: "https://git.example.com/a.git", path: a}}
---
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: shop, annotations: {apps.waybill.dev/owner: hub/GitSync/NAMESPACE/repo}}
spec:
  applicationRef: {name: shop, version: 1.0.0}
  values: {replicas: 2}
  valuesFrom: [{kind: Secret, name: values}, {kind: ConfigMap, name: perhaps, optional: true}]
`

// S85: an application that is installed is captured with its installation, what that has resolved to, and
// the revision that brought it.
func TestFind_installation(t *testing.T) {
	w := newWorld(t)
	applied := w.apply(strings.ReplaceAll(inNamespace(installed, w.Namespace), "OWNER", `""`))
	inst, sync := applied[4], applied[3]
	w.status(inst, map[string]any{
		"application": map[string]any{"name": "shop", "version": "1.0.0", "method": "helm", "namespace": w.Namespace, "revision": "1.0.0"},
		"release":     map[string]any{"name": "shop", "namespace": w.Namespace, "revision": int64(3), "chart": "shop-1.0.0", "digest": "sha256:of-everything"},
	})
	w.status(sync, map[string]any{"revision": "main@sha1:4f2a"})

	check := func(found *contents.Contents) {
		t.Helper()
		assert.Equal(t, []string{
			`Secret values: valuesFrom of ApplicationInstallation "shop"`,
			`Service shop: component of Application "shop"`,
			`ApplicationInstallation shop: installs the application`,
		}, objects(found))
		require.NotNil(t, found.Installation)
		delivery, ok := contents.DeliveryOf(found.Installation)
		assert.True(t, ok)
		assert.Equal(t, contents.Delivery{
			GitSync: w.Namespace + "/repo", GitRevision: "main@sha1:4f2a",
			Definition: "shop", Version: "1.0.0", Method: v1alpha1.MethodHelm, Namespace: w.Namespace, Revision: "1.0.0",
			Release: "shop", ReleaseRevision: 3, Chart: "shop-1.0.0", ReleaseDigest: "sha256:of-everything",
		}, delivery)
	}
	check(w.find("shop")) // by its components
	patch(w, applied[0], `{"metadata":{"annotations":{"apps.waybill.dev/owner":"hub/ApplicationInstallation/`+w.Namespace+`/shop"}}}`)
	check(w.find("shop"))

	patch(w, applied[0], `{"metadata":{"annotations":{"apps.waybill.dev/owner":"hub/ApplicationInstallation/elsewhere/shop","apps.waybill.dev/delivery":"{\"version\":\"2.0.0\"}"}}}`)
	found := w.find("shop")
	assert.Nil(t, found.Installation)
	assert.Equal(t, []string{`ApplicationInstallation shop: it delivers the application from namespace "elsewhere", and only objects of the application's namespace are followed`}, left(found))
	_, ok := contents.DeliveryOf(found.Application)
	assert.False(t, ok, "the annotation of another")

	patch(w, applied[0], `{"metadata":{"annotations":{"apps.waybill.dev/owner":"hub/GitSync/`+w.Namespace+`/repo"}}}`)
	found = w.find("shop")
	assert.Nil(t, found.Installation)
	delivery, _ := contents.DeliveryOf(found.Application)
	assert.Equal(t, contents.Delivery{GitSync: w.Namespace + "/repo", GitRevision: "main@sha1:4f2a"}, delivery)
}

// status writes the status of an object.
func (w *world) status(o *unstructured.Unstructured, status map[string]any) {
	w.T.Helper()
	before := o.DeepCopy()
	o.Object["status"] = status
	require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), o, client.MergeFrom(before)))
}

const bound = `
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NAMESPACE}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Mi}, storageClassName: "",
  persistentVolumeReclaimPolicy: Retain, csi: {driver: files.example.com, volumeHandle: NAMESPACE}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: NAMESPACE, resources: {requests: {storage: 1Mi}}}}
---
{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: tool}, spec: {type: tool, selector: {matchLabels: {app: tool}}, components: [{group: batch, kind: CronJob}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: token}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: tool, labels: {app: tool}}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {
    restartPolicy: Never, containers: [{name: tool, image: tool, envFrom: [{secretRef: {name: token}}]}],
    volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}}}}
`

const rights = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: user}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: user}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: user},
  subjects: [{kind: ServiceAccount, namespace: NAMESPACE, name: user}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: user}, rules: [
  {apiGroups: ["", apps, batch, apps.waybill.dev, rbac.authorization.k8s.io], resources: [pods, persistentvolumeclaims, replicasets, jobs, cronjobs, applications, serviceaccounts, rolebindings], verbs: [get, list]}]}
`

// S85: with the rights of a user in one namespace. What may not be read is named, but for drivers.
func TestFind_rights(t *testing.T) {
	w := newWorld(t)
	applied := w.apply(inNamespace(bound, w.Namespace))
	require.True(t, w.Eventually(func() bool {
		claim := &unstructured.Unstructured{}
		claim.SetGroupVersionKind(applied[1].GroupVersionKind())
		phase, _, _ := unstructured.NestedString(w.read(claim, "data"), "status", "phase")
		return phase == "Bound"
	}))
	role := w.apply(inNamespace(rights, w.Namespace))[2]
	config := w.Cluster.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: w.User("user")}
	finder := w.finder(config)
	// The binding came before the role: wait until both are known.
	require.True(t, w.Eventually(func() bool {
		_, err := finder.Find(t.Context(), w.Namespace, "tool")
		return err != nil && strings.Contains(err.Error(), "secrets")
	}))
	_, err := finder.Find(t.Context(), w.Namespace, "tool")
	assert.True(t, apierrors.IsForbidden(err))
	assert.ErrorContains(t, err, `get Secret "token" in namespace "`+w.Namespace+`": secrets "token" is forbidden`)

	patch(w, role, `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["get","list"]}]}`)
	var found *contents.Contents
	require.True(t, w.Eventually(func() bool {
		found, err = finder.Find(t.Context(), w.Namespace, "tool")
		return err == nil
	}), "%v", err)
	require.Len(t, found.Claims, 1)
	assert.Equal(t, w.Namespace, found.Claims[0].Volume)
	assert.Empty(t, found.Claims[0].Driver)

	admin := w.Cluster.RESTConfig()
	count := requests(admin)
	finder = w.finder(admin)
	found, err = finder.Find(t.Context(), w.Namespace, "tool")
	require.NoError(t, err)
	assert.Equal(t, "files.example.com", found.Claims[0].Driver)
	before := count.Load()
	_, err = finder.Find(t.Context(), w.Namespace, "tool")
	require.NoError(t, err)
	// Application, CronJobs, the other Applications, Pods, Secret, account, RoleBindings, claims, volume.
	assert.EqualValues(t, 9, count.Load()-before, "requests, once kinds are known")
}

// read returns an object of the namespace.
func (w *world) read(o *unstructured.Unstructured, name string) map[string]any {
	w.Exists(o, name)
	return o.Object
}
