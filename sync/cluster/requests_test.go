package cluster_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/test/env"
)

// as engages the user cluster as a user of the test's own, whose requests can be counted.
func as(t *testing.T, name string, o cluster.Options) *cluster.Cluster {
	t.Helper()
	config, err := user(t).AddUser(name, "system:masters")
	require.NoError(t, err)
	r := newRegistry(t, o)
	r.Ensure(one, name, config)
	return engaged(t, r, one)
}

func mark(t *testing.T) env.AuditMark {
	t.Helper()
	m, err := user(t).AuditMark(t.Context())
	require.NoError(t, err)
	return m
}

func requests(t *testing.T, since env.AuditMark, name string) []env.Request {
	t.Helper()
	list, err := user(t).Requests(t.Context(), since, env.ByUser(name))
	require.NoError(t, err)
	return list
}

func uris(t *testing.T, since env.AuditMark, name string) []string {
	t.Helper()
	var list []string
	for _, r := range requests(t, since, name) {
		list = append(list, r.Verb+" "+r.URI)
	}
	return list
}

// An idle cluster costs a probe, and nothing else: no discovery either.
func TestRegistry_requestsOfAnIdleCluster(t *testing.T) {
	start := mark(t)
	o := fast()
	o.ProbeInterval = 100 * time.Millisecond
	c := as(t, "idle", o)
	watchDefinitions(t, c)
	require.Eventually(t, func() bool { return len(uris(t, start, "idle")) > 6 }, limit, often)
	got := uris(t, start, "idle")
	assert.Equal(t, []string{"get /readyz", "get /version", "get /api/v1/namespaces/kube-system"}, got[:3])
	for _, request := range got[3:] {
		assert.Regexp(t, `^(get /readyz|get /version|get /api/v1/namespaces/kube-system|watch /apis/apps.waybill.dev/v1alpha1/applicationdefinitions.*)$`, request)
	}
}

// Requests that are answered are probe enough.
func TestRegistry_noProbeWhileTalking(t *testing.T) {
	o := fast()
	o.ProbeInterval = time.Second
	c := as(t, "talking", o)
	talk := func() {
		require.NoError(t, c.Client().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}))
	}
	talk()
	last := time.Now()
	before, silences := last, 0
	start := mark(t)
	for began := last; last.Sub(began) < 3*o.ProbeInterval; {
		talk()
		now := time.Now()
		// The machine may have stood still for a while, on either side of an answer.
		silences += int(now.Sub(before) / o.ProbeInterval)
		before, last = last, now
	}
	probes := 0
	for _, uri := range uris(t, start, "talking") {
		if uri == "get /readyz" {
			probes++
		}
	}
	assert.LessOrEqual(t, probes, silences)
}

// A cluster that never falls silent is upgraded, too.
func TestRegistry_readsTheVersionAgainWhileTalking(t *testing.T) {
	var upgraded atomic.Bool
	config := behind(t, user(t), func(_ *httptest.Server, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/version" || !upgraded.Load() {
			return false
		}
		_, _ = w.Write([]byte(`{"gitVersion":"v9.9.9"}`))
		return true
	})
	r := newRegistry(t, fast())
	r.Ensure(one, "a", config)
	c := engaged(t, r, one)
	upgraded.Store(true)
	require.Eventually(t, func() bool {
		err := c.Client().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{})
		state, _ := r.State(one)
		return err == nil && state.Version == "v9.9.9"
	}, limit, often)
}

// No discovery per action; a kind that does not exist is not asked for over and over.
func TestCluster_Mapper_asksOnce(t *testing.T) {
	c := as(t, "mapping", fast())
	_, err := c.Mapper().RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1")
	require.NoError(t, err)
	start := mark(t)
	for range 50 {
		_, err = c.Mapper().RESTMapping(schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, "v1")
		require.NoError(t, err)
		_, err = c.Mapper().RESTMapping(schema.GroupKind{Kind: "Secret"}, "v1")
		require.NoError(t, err)
	}
	assert.Empty(t, discoveries(uris(t, start, "mapping")))

	for range 50 {
		_, err = c.Mapper().RESTMapping(schema.GroupKind{Group: "asks-once.example.com", Kind: "Missing"}, "v1")
		require.True(t, meta.IsNoMatchError(err), "%v", err)
	}
	asked := len(discoveries(uris(t, start, "mapping")))
	assert.Positive(t, asked)
	assert.Less(t, asked, 5)
}

// A kind is found as soon as a caller that saw its CRD appear says so.
func TestCluster_Mapper_findsAKindThatAppears(t *testing.T) {
	c := as(t, "appearing", fast())
	gk := schema.GroupKind{Group: user(t).Namespace(t) + ".example.com", Kind: "Widget"} // of this run alone
	_, err := c.Mapper().RESTMapping(gk, "v1")
	require.True(t, meta.IsNoMatchError(err), "%v", err)

	scheme := newScheme(t)
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	direct, err := client.New(user(t).RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + gk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gk.Group,
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: gk.Kind, Plural: "widgets"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
	require.NoError(t, direct.Create(t.Context(), crd))
	t.Cleanup(func() { _ = direct.Delete(context.WithoutCancel(t.Context()), crd) })
	require.Eventually(t, func() bool {
		meta.MaybeResetRESTMapper(c.Mapper())
		mapping, err := c.Mapper().RESTMapping(gk, "v1")
		return err == nil && mapping.Resource.Resource == "widgets" && mapping.Scope.Name() == meta.RESTScopeNameRoot
	}, limit, 50*time.Millisecond)
}

// Our own kinds are read from the cache, everything else from the API server.
func TestClient_cachesOurKindsAlone(t *testing.T) {
	name := createDefinition(t, user(t).RESTConfig())
	c := as(t, "reading", fast())
	watchDefinitions(t, c)
	require.NoError(t, c.Client().List(t.Context(), &v1alpha1.ApplicationDefinitionList{}))
	start := mark(t)
	for range 10 {
		require.NoError(t, c.Client().Get(t.Context(), client.ObjectKey{Name: name}, &v1alpha1.ApplicationDefinition{}))
		require.NoError(t, c.Client().List(t.Context(), &corev1.SecretList{}, client.InNamespace("default")))
	}
	secrets := 0
	for _, request := range uris(t, start, "reading") {
		assert.NotContains(t, request, "applicationdefinitions")
		if request == "list /api/v1/namespaces/default/secrets" {
			secrets++
		}
	}
	assert.Equal(t, 10, secrets)
}

// Callers that ask for fresh discovery do not each start it again.
func TestCluster_Discovery_isNotStartedAnewByEveryCaller(t *testing.T) {
	c := as(t, "discovering", fast())
	start := mark(t)
	for range 10 {
		c.Discovery().Invalidate()
		_, _, err := c.Discovery().ServerGroupsAndResources()
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, len(discoveries(uris(t, start, "discovering"))), 2, "aggregated discovery takes two requests")
}

func discoveries(uris []string) []string {
	var found []string
	for _, uri := range uris {
		switch uri {
		case "get /readyz", "get /version", "get /api/v1/namespaces/kube-system":
		default:
			found = append(found, uri)
		}
	}
	return found
}

// Metadata of anything can be watched, and is kept without what applied it: for a Secret
// that is the Secret.
func TestCluster_Cache_keepsMetadataWithoutContent(t *testing.T) {
	c := as(t, "metadata", fast())
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: user(t).Namespace(t), Name: "s",
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "password", "kept": "yes"},
		},
	}
	require.NoError(t, c.Client().Create(t.Context(), secret))
	seen := &metav1.PartialObjectMetadata{}
	seen.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	require.NoError(t, c.Cache().Get(t.Context(), client.ObjectKeyFromObject(secret), seen))
	assert.Equal(t, map[string]string{"kept": "yes"}, seen.Annotations)
	assert.Empty(t, seen.ManagedFields)
}
