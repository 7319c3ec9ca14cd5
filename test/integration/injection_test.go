package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/webhooks"
	"waybill.dev/waybill/webhooks/registration"
)

// deliverer is who delivers in these tests, as the audit log names it.
const deliverer = "deliverer"

// marked is a cluster whose objects are marked as what they are part of while they are written.
type marked struct {
	*testing.T
	cluster   *env.Cluster
	admin     client.Client
	config    *rest.Config // of the deliverer
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
	namespace string
}

// Config implements release.Target.
func (m *marked) Config() *rest.Config { return m.config }

// Mapper implements apply.Target and release.Target.
func (m *marked) Mapper() meta.RESTMapper { return m.mapper }

// Discovery implements apply.Target and release.Target.
func (m *marked) Discovery() discovery.CachedDiscoveryInterface { return m.discovery }

// Metadata implements apply.Target.
func (m *marked) Metadata() metadata.Interface { return metadata.NewForConfigOrDie(m.config) }

// Dynamic implements apply.Target.
func (m *marked) Dynamic() dynamic.Interface { return dynamic.NewForConfigOrDie(m.config) }

var (
	_ apply.Target   = (*marked)(nil)
	_ release.Target = (*marked)(nil)
)

func newMarked(t *testing.T) *marked {
	t.Helper()
	m := &marked{T: t, cluster: env.Shared(t, env.Options{Name: "marked", CRDs: []string{"../../charts/waybill/crds"}, Audit: true})}
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	var err error
	m.admin, err = client.New(m.cluster.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	m.config, err = m.cluster.AddUser(deliverer, "system:masters")
	require.NoError(t, err)
	m.config.QPS = -1
	plain, err := discovery.NewDiscoveryClientForConfig(m.config)
	require.NoError(t, err)
	m.discovery = memory.NewMemCacheClient(plain)
	m.mapper = restmapper.NewDeferredDiscoveryRESTMapper(m.discovery)
	m.namespace = m.cluster.Namespace(t)
	serveAdmission(t, m.cluster.RESTConfig())
	return m
}

// serveAdmission runs the webhook, registered by URL, as long as the test.
func serveAdmission(t *testing.T, config *rest.Config) {
	t.Helper()
	listen, health := env.Address(t), env.Address(t)
	endpoint, err := registration.ParseURL("https://" + listen)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- webhooks.Run(ctx, config, webhooks.Options{
			Registration: registration.Options{
				Namespace: v1alpha1.DefaultSystemNamespace, Endpoint: endpoint, Listen: listen, Settle: time.Second, Unregister: true,
				InjectionTimeout: 30 * time.Second, // API servers go on without marks after it, however busy the machine is
			},
			MetricsAddress: "0", HealthAddress: health,
		})
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, limit, often, "the webhook does not become ready")
}

// application creates one that lists every ConfigMap of a label, and returns when they are marked.
func (m *marked) application(name, label, value string) *v1alpha1.Application {
	m.Helper()
	app := &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name},
		Spec: v1alpha1.ApplicationSpec{
			Type: "web", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
			Components: []v1alpha1.ApplicationComponent{{Kind: "ConfigMap"}},
		},
	}
	require.NoError(m, m.admin.Create(m.Context(), app))
	require.Eventually(m, func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "probe", Labels: map[string]string{label: value}}}
		require.NoError(m, m.admin.Create(m.Context(), probe, client.DryRunAll))
		return probe.Annotations[v1alpha1.ApplicationAnnotation] == name
	}, limit, often)
	return app
}

func (m *marked) configMap(name string) *corev1.ConfigMap {
	m.Helper()
	obj := &corev1.ConfigMap{}
	require.NoError(m, m.admin.Get(m.Context(), client.ObjectKey{Namespace: m.namespace, Name: name}, obj))
	return obj
}

// edit patches a ConfigMap as another user.
func (m *marked) edit(name, patch string) {
	m.Helper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name}}
	require.NoError(m, m.admin.Patch(m.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody")))
}

// writes counts what the deliverer writes while something is done.
func (m *marked) writes(do func()) []string {
	m.Helper()
	mark, err := m.cluster.AuditMark(m.Context())
	require.NoError(m, err)
	do()
	requests, err := m.cluster.Requests(m.Context(), mark, env.ByUser(deliverer), env.Writes, env.Accepted)
	require.NoError(m, err)
	var writes []string
	for _, r := range requests {
		writes = append(writes, r.Verb+" "+r.URI)
	}
	return writes
}

// mark is a patch as the Application controller makes it of what admission missed.
const mark = `{"metadata":{"annotations":{"kubernetes.io/application":"web","apps.waybill.dev/injected":"web"},"labels":{"app.kubernetes.io/part-of":"web"}}}`

// P10, C53: what we deliver and then mark is not delivered again for that; neither marks of
// admission nor those of a controller are drift.
func TestInjection_isNoDriftOfWhatIsApplied(t *testing.T) {
	m := newMarked(t)
	notified := make(chan apply.Owner, 1000)
	applier := apply.New(t.Context(), m, apply.Options{Notify: func(o apply.Owner) { notified <- o }})
	owner := apply.Owner{HubID: "hub", Kind: v1alpha1.GitSyncKind, Namespace: "team", Name: m.namespace}
	t.Cleanup(func() { applier.Forget(owner) })
	deliver := func(value string) (apply.Result, []string) {
		var result apply.Result
		writes := m.writes(func() {
			result = applier.Apply(t.Context(), apply.Request{Owner: owner, Prune: true, DefaultNamespace: m.namespace, Objects: []manifest.Object{
				configMapObject("older", value), configMapObject("newer", value), configMapObject("canary", value),
			}})
		})
		require.NoError(t, result.Err)
		require.Empty(t, result.Problems)
		return result, writes
	}
	deliver("one")
	require.Empty(t, m.configMap("newer").Annotations[v1alpha1.ApplicationAnnotation], "there is no Application yet")
	m.application("web", "app", "web")

	m.edit("older", mark)
	m.edit("newer", `{"metadata":{"annotations":{"touched":"once"}}}`) // and so marked by admission
	require.Equal(t, "web", m.configMap("newer").Annotations[v1alpha1.ApplicationAnnotation])
	assertNotified(t, m, applier, owner, notified)
	_, writes := deliver("one")
	assert.Len(t, writes, 1, "only the canary: %v", writes)

	_, writes = deliver("two")
	assert.Len(t, writes, 3, "there is something new to deliver: %v", writes)
	for _, name := range []string{"older", "newer"} {
		assert.Equal(t, "web", m.configMap(name).Labels[v1alpha1.PartOfLabel], name)
	}
	_, writes = deliver("two")
	assert.Empty(t, writes)

	m.edit("newer", `{"metadata":{"annotations":{"kubernetes.io/application":""}}}`) // a user takes it out
	assertNotified(t, m, applier, owner, notified)
	_, writes = deliver("two")
	assert.Len(t, writes, 1, "only the canary: %v", writes)
	assert.Empty(t, m.configMap("newer").Annotations[v1alpha1.ApplicationAnnotation])
}

// assertNotified: an edit that is drift comes after all else in the same watch, and nothing else drifted.
func assertNotified(t *testing.T, m *marked, applier *apply.Applier, owner apply.Owner, notified chan apply.Owner) {
	t.Helper()
	m.edit("canary", fmt.Sprintf(`{"data":{"key":"edited %d"}}`, time.Now().UnixNano()))
	require.Eventually(t, func() bool {
		select {
		case <-notified:
		default:
		}
		seen, known := applier.Observe(owner)
		require.True(t, known)
		if len(seen.Drifted) == 0 {
			return false
		}
		require.Len(t, seen.Drifted, 1)
		require.Equal(t, "canary", seen.Drifted[0].Name)
		return true
	}, limit, often)
}

func configMapObject(name, value string) manifest.Object {
	return manifest.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app": "web"}}, "data": map[string]any{"key": value},
	}}}
}

// P10, C53, C54, C55: a release whose objects are marked, by admission or by a controller, is as it was wanted.
func TestInjection_isNoDriftOfARelease(t *testing.T) {
	m := newMarked(t)
	engine := release.NewEngine()
	var known *v1alpha1.ReleaseStatus
	desired := func(value string) release.Desired {
		return release.Desired{
			Identity: release.Identity{Namespace: m.namespace, Name: "web", Owner: "hub/ApplicationInstallation/team/web", OwnerHash: "hash", Known: known},
			Chart: &chart.Chart{
				Metadata: &chart.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0"},
				Templates: []*chart.File{{Name: "templates/all.yaml", Data: []byte(`
{{- range list "older" "newer" }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ . }}, labels: {app.kubernetes.io/instance: web}}
data: {key: {{ $.Values.value }}}
{{- end }}
`)}},
			},
			ChartDigest: "sha256:web", Values: map[string]any{"value": value},
		}
	}
	settled := func(reason string) {
		t.Helper()
		writes := m.writes(func() {
			result, err := engine.Ensure(t.Context(), m, desired(m.configMap("newer").Data["key"]))
			require.NoError(t, err, reason)
			require.Equal(t, release.ActionNone, result.Action, reason)
			drift, err := engine.Detect(t.Context(), m, desired("").Identity, nil)
			require.NoError(t, err, reason)
			assert.Empty(t, drift.Objects, reason)
		})
		before := []string{m.configMap("older").ResourceVersion, m.configMap("newer").ResourceVersion}
		drift, err := engine.Correct(t.Context(), m, desired("").Identity, nil)
		require.NoError(t, err, reason)
		assert.Empty(t, drift.Objects, reason)
		assert.Equal(t, before, []string{m.configMap("older").ResourceVersion, m.configMap("newer").ResourceVersion}, "%s: nothing is written", reason)
		for _, w := range writes {
			assert.Contains(t, w, "dryRun=All", reason)
		}
	}
	result, err := engine.Ensure(t.Context(), m, desired("one"))
	require.NoError(t, err)
	known = &result.Release
	m.application("web", v1alpha1.ReleaseLabel, "web")
	settled("older than its Application")

	m.edit("older", mark)
	m.edit("newer", `{"metadata":{"annotations":{"touched":"once"}}}`)
	require.Equal(t, "web", m.configMap("newer").Annotations[v1alpha1.ApplicationAnnotation])
	settled("marked by others")

	result, err = engine.Ensure(t.Context(), m, desired("two"))
	require.NoError(t, err)
	known = &result.Release
	assert.Equal(t, "two", m.configMap("older").Data["key"])
	assert.Equal(t, "web", m.configMap("older").Annotations[v1alpha1.ApplicationAnnotation], "an upgrade leaves marks")
	settled("upgraded")

	require.NoError(t, m.admin.Delete(t.Context(), m.configMap("newer")))
	_, err = engine.Correct(t.Context(), m, desired("").Identity, nil)
	require.NoError(t, err)
	assert.Equal(t, "web", m.configMap("newer").Annotations[v1alpha1.ApplicationAnnotation], "made again, and marked while it is made")
	settled("made again")
}
