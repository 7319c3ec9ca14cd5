package healthcache

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/health"
)

// shop is an API server with one Deployment and one Pod, which are what their fields say.
type shop struct {
	dynamic dynamic.Interface

	mu              sync.Mutex
	deployment, pod map[string]any
	// lists are the queries of the lists of Pods.
	lists []url.Values
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{}
	s.deploy("1", 0)
	s.runs(map[string]any{"phase": "Pending"})
	d, err := dynamic.NewForConfig(&rest.Config{Host: "http://shop", QPS: -1, Transport: s})
	require.NoError(t, err)
	s.dynamic = d
	return s
}

func (s *shop) Metadata() metadata.Interface { return nil }
func (s *shop) Dynamic() dynamic.Interface   { return s.dynamic }

// deploy sets how many of two Pods of the Deployment are available.
func (s *shop) deploy(version string, available int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deployment = map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": version, "generation": 1},
		"spec":     map[string]any{"replicas": 2, "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}},
		"status": map[string]any{
			"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": available, "availableReplicas": available,
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		},
	}
}

// runs sets the status of the Pod.
func (s *shop) runs(status map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pod = map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "web-1"}, "status": status}
}

func (s *shop) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content := s.deployment
	if strings.HasSuffix(r.URL.Path, "/namespaces/shop/pods") {
		s.lists = append(s.lists, r.URL.Query())
		content = map[string]any{"apiVersion": "v1", "kind": "PodList", "items": []any{s.pod}}
	}
	text, err := json.Marshal(content)
	return &http.Response{
		Request: r, StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(text))),
		Header: http.Header{"Content-Type": {"application/json"}},
	}, err
}

// An image that cannot be pulled changes Pods, and not their Deployment.
func TestCache_saysWhyPodsDoNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, told := newShop(t), 0
		c := New(t.Context(), server, Options{
			Changed: func(tracker.Ref) { told++ },
			Count:   func(schema.GroupKind, string) int { return 1 },
		})
		get := func(version string) Result {
			q := Query{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, UID: "u", Version: version}
			q.Group, q.Kind, q.Namespace, q.Name = "apps", "Deployment", "shop", "web"
			c.Get(q)
			synctest.Wait()
			result, known := c.Get(q)
			assert.True(t, known)
			return result
		}
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() } // by the clock of the test

		first := Result{health.InProgress, "Available: 0/2"}
		assert.Equal(t, first, get("1"))
		wait(looks[0])
		assert.Equal(t, first, get("1"), "the image is being pulled")
		server.runs(map[string]any{"phase": "Pending", "containerStatuses": []any{map[string]any{
			"name": "web", "image": "nginx:nope", "state": map[string]any{"waiting": map[string]any{"reason": "ErrImagePull"}},
		}}})
		wait(looks[1])
		sick := Result{health.InProgress, `Available: 0/2; Pod web-1: container "web": ImagePullBackOff: image "nginx:nope"`}
		assert.Equal(t, sick, get("1"))
		assert.Equal(t, 2, told, "once for the Deployment, and once for its Pods")
		wait(time.Hour)
		assert.Len(t, server.lists, len(looks), "what does not change is not looked at for ever")
		assert.Equal(t, url.Values{"labelSelector": {"app=web"}, "limit": {"20"}}, server.lists[0])

		server.deploy("2", 1)
		assert.Equal(t, `Available: 1/2; Pod web-1: container "web": ImagePullBackOff: image "nginx:nope"`, get("2").Message,
			"it does not come and go with each version")
		server.deploy("3", 2)
		assert.Equal(t, health.Current, get("3").Status)
		assert.NotContains(t, get("3").Message, "Pod")
		wait(time.Hour)
		assert.Len(t, server.lists, len(looks), "a Deployment that is well has no Pods that matter")
	})
}
