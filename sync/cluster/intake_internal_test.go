package cluster

import (
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	configMaps    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	configMapPath = "/api/v1/configmaps"
)

// anEighth are limits that take a test an eighth of the time, which the race detector makes much longer. Those
// of an event stay; it may not be larger than any response, either.
func anEighth() limits {
	l := defaultLimits()
	for _, limit := range []*int64{&l.body, &l.bodyWeight, &l.discovery, &l.discoveryWeight, &l.groupsWeight, &l.kept} {
		*limit /= 8
	}
	return l
}

// engagedWith returns the cluster that a hostile API server makes of itself.
func engagedWith(t *testing.T, h *hostile) (*Cluster, func() error) {
	t.Helper()
	return engagedWithin(t, h, anEighth())
}

func engagedWithin(t *testing.T, h *hostile, l limits) (*Cluster, func() error) {
	t.Helper()
	known, err := newKinds(nil)
	require.NoError(t, err)
	key := types.NamespacedName{Namespace: "team-a", Name: "hostile"}
	r := NewRegistry(&Cluster{kinds: known, views: newViews()}, Options{limits: l})
	t.Cleanup(r.Close)
	r.Ensure(key, "a", h.config())
	var c *Cluster
	require.Eventually(t, func() bool {
		c, err = r.Get(key)
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	return c, func() error {
		_, err := r.Get(key)
		return err
	}
}

func watchAll(t *testing.T, c *Cluster) {
	w, err := c.Metadata().Resource(configMaps).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		return // it was cut off already
	}
	defer w.Stop()
	for range w.ResultChan() {
		continue
	}
}

func watchWhole(t *testing.T, c *Cluster) {
	w, err := c.Dynamic().Resource(configMaps).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		return
	}
	defer w.Stop()
	for range w.ResultChan() {
		continue
	}
}

func listAll(t *testing.T, c *Cluster) {
	_, err := c.Metadata().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	assert.Error(t, err)
}

func getOne(t *testing.T, c *Cluster) {
	_, err := c.Dynamic().Resource(configMaps).Namespace("a").Get(t.Context(), "one", metav1.GetOptions{})
	assert.Error(t, err)
}

func discover(t *testing.T, c *Cluster) {
	_, _, err := c.Discovery().ServerGroupsAndResources()
	assert.Error(t, err)
}

// A user cluster that sends more than is accepted of it is disconnected, before it takes memory that
// others need.
func TestIntake_disconnectsWhatSendsTooMuch(t *testing.T) {
	const (
		protobuf = "application/vnd.kubernetes.protobuf"
		group    = `{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[`
		kind     = `{"resource":"t","responseKind":{"kind":"T"},"verbs":["get","list"]},`
	)
	cases := map[string]struct {
		path    string
		answer  http.HandlerFunc
		request func(*testing.T, *Cluster)
		want    string
	}{
		"EndlessEvent": {configMapPath, sends(`{"type":"ADDED","object":{"metadata":{"name":"`, "aaaaaaaa"), watchAll,
			"an event of WATCH /api/v1/configmaps exceeds the limit of 8 MiB"},
		"EndlessSpace": {configMapPath, sends("", "   \n"), watchAll,
			"an event of WATCH /api/v1/configmaps exceeds the limit of 8 MiB"},
		"EventOfManyObjects": {configMapPath, sends(`{"type":"ADDED","object":{"x":[{}`, ",{}"), watchWhole,
			"the decoded size of an event of WATCH /api/v1/configmaps exceeds the limit of 192 MiB"},
		"ProtobufEvent": {configMapPath, typed(protobuf+";stream=watch", sends("\x7f\xff\xff\xff", "j\x00")), watchAll,
			"an event of WATCH /api/v1/configmaps exceeds the limit of 2 MiB"},
		"EndlessList": {configMapPath, sends(`{"items":[{"metadata":{"name":"`, "aaaaaaaa"), listAll,
			"the response to GET /api/v1/configmaps exceeds the limit of 8 MiB"},
		"ListOfManyObjects": {configMapPath, sends(`{"items":[{}`, ",{}"), listAll,
			"the decoded size of the response to GET /api/v1/configmaps exceeds the limit of 40 MiB"},
		"ProtobufList": {configMapPath, typed(protobuf, sends("k8s\x00", "\x12\x00")), listAll,
			"the response to GET /api/v1/configmaps exceeds the limit of 2 MiB"},
		"NoType": {configMapPath, typed("", sends("k8s\x00", "\x12\x00")), listAll,
			"the response to GET /api/v1/configmaps exceeds the limit of 2 MiB"},
		"CompressedList": {configMapPath, packed(t, `{"items":[{"metadata":{"name":"`, "aaaaaaaa"), listAll,
			"the response to GET /api/v1/configmaps exceeds the limit of 8 MiB"},
		"EndlessError": {"/api/v1/namespaces/a/configmaps/one", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusConflict)
			sends(`{"kind":"Status","message":"`, "aaaaaaaa")(w, r)
		}, getOne, "the response to GET /api/v1/namespaces/a/configmaps/one exceeds the limit of 4 MiB"},
		"EndlessDiscovery": {"/apis", typed("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
			sends(`{"items":[{"metadata":{"name":"`, "aaaaaaaa")), discover,
			"the response to GET /apis exceeds the limit of 2 MiB"},
		"ManyKinds": {"/apis", typed("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
			sends(`{"items":[`+group, kind)), discover,
			"the decoded size of the response to GET /apis exceeds the limit of 12 MiB"},
		"ManyGroups": {"/apis", sends(`{"kind":"APIGroupList","groups":[{}`, `,{"name":"g","versions":[{"version":"v1"}]}`), discover,
			"the decoded size of the response to GET /apis exceeds the limit of 1 MiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			before := heapSys()
			c, got := engagedWith(t, newHostile(t, map[string]http.HandlerFunc{tc.path: tc.answer}))
			tc.request(t, c)
			var lost *UnreachableError
			require.Eventually(t, func() bool { return errors.As(got(), &lost) }, time.Minute, 5*time.Millisecond)
			require.NotNil(t, lost.Limit)
			assert.Equal(t, tc.want, lost.Limit.Error())
			require.ErrorIs(t, lost, ErrUnreachable)
			assert.Less(t, heapSys()-before, int64(400<<20))
		})
	}
}

// heapSys is the largest size that the heap has had.
func heapSys() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapSys)
}

// Each version of an old server's API is a document of its own: they count together.
func TestIntake_discoveryCountsAsAWhole(t *testing.T) {
	const versions = 40 // of 384 KiB of text each
	paths := map[string]http.HandlerFunc{}
	groups := []string{}
	resources := `{"kind":"APIResourceList","resources":[{"name":"` + strings.Repeat("a", 384<<10) + `"}]}`
	for i := range versions {
		name := strings.Repeat("g", i+1)
		groups = append(groups, `{"name":"`+name+`","versions":[{"groupVersion":"`+name+`/v1","version":"v1"}]}`)
		paths["/apis/"+name+"/v1"] = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(resources)) }
	}
	paths["/apis"] = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"kind":"APIGroupList","groups":[` + strings.Join(groups, ",") + "]}"))
	}
	c, got := engagedWith(t, newHostile(t, paths))
	discover(t, c)
	require.Eventually(t, func() bool { return got() != nil }, time.Minute, 5*time.Millisecond)
	require.ErrorContains(t, got(), "the decoded size of all discovery documents")
	require.ErrorContains(t, got(), "exceeds the limit of 12 MiB")
}

// Credentials and requests go to the server of the kubeconfig, and nothing is read that becomes what
// cannot be known beforehand.
func TestIntake_refusesRedirectsAndYAML(t *testing.T) {
	cases := map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"Redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/api/v1/secrets", http.StatusFound) },
			"answers GET /api/v1/configmaps with a redirect, which is not followed"},
		"YAML": {typed("application/yaml", sends("", "a: b\n")), "answers in YAML"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, got := engagedWith(t, newHostile(t, map[string]http.HandlerFunc{configMapPath: tc.answer}))
			_, err := c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			require.ErrorContains(t, err, tc.want)
			assert.NoError(t, got(), "it is still a cluster that answers")
		})
	}
}

// What an honest API server sends passes, however much that is over time.
func TestIntake_passesOrdinaryEvents(t *testing.T) {
	const events = 250                    // more than one event may have
	text := strings.Repeat("x{[,", 4<<10) // within a string, it is no structure
	event := `{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"` + text + `\""}}}` + "\n"
	l := anEighth()
	l.frame /= 8
	c, got := engagedWithin(t, newHostile(t, map[string]http.HandlerFunc{configMapPath: func(w http.ResponseWriter, _ *http.Request) {
		for range events {
			_, _ = w.Write([]byte(event))
		}
	}}), l)
	w, err := c.Dynamic().Resource(configMaps).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	seen := 0
	for range w.ResultChan() {
		seen++
	}
	assert.Equal(t, events, seen)
	assert.NoError(t, got())
}
