package contents_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

// world is that of one test: a namespace on a cluster with Pods, and without any controller of Waybill.
type world struct{ *hub.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "cluster", Pods: true, CRDs: []string{"../../../../charts/waybill/crds", "testdata/databases.yaml"}})
	return &world{hub.NewWorld(t, c)}
}

// apply creates the objects of a YAML text, and returns them.
func (w *world) apply(text string) []*unstructured.Unstructured {
	w.T.Helper()
	var created []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := documents.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return created
		}
		require.NoError(w.T, err)
		w.Create(o)
		created = append(created, o)
	}
}

// own makes an object the controller of others.
func (w *world) own(owner *unstructured.Unstructured, others ...*unstructured.Unstructured) {
	w.T.Helper()
	for _, o := range others {
		patch := client.MergeFrom(o.DeepCopy())
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
		require.NoError(w.T, w.Client.Patch(w.T.Context(), o, patch))
	}
}

// scale sets the replicas of a workload, and waits until there are as many running Pods in the namespace.
func (w *world) scale(workload *unstructured.Unstructured, replicas int) {
	w.T.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	require.NoError(w.T, w.Client.Patch(w.T.Context(), workload, patch))
	w.awaitPods(replicas)
}

func (w *world) awaitPods(want int) {
	w.T.Helper()
	pods := &corev1.PodList{}
	require.True(w.T, w.Eventually(func() bool {
		require.NoError(w.T, w.Client.List(w.T.Context(), pods, client.InNamespace(w.Namespace)))
		running := 0
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		return len(pods.Items) == want && running == want
	}), "%d Pods run: %+v", want, pods.Items)
}

// finder returns a Finder with the rights of a configuration.
func (w *world) finder(config *rest.Config) *contents.Finder {
	w.T.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	require.NoError(w.T, err)
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	require.NoError(w.T, err)
	reader, err := client.New(config, client.Options{Scheme: hub.NewScheme(w.T), Mapper: mapper, HTTPClient: httpClient})
	require.NoError(w.T, err)
	return &contents.Finder{Reader: reader, Mapper: mapper}
}

// find returns what belongs to an Application of the namespace.
func (w *world) find(application string) *contents.Contents {
	w.T.Helper()
	found, err := w.finder(w.Cluster.RESTConfig()).Find(w.T.Context(), w.Namespace, application)
	require.NoError(w.T, err)
	return found
}

// requests counts those of a configuration.
func requests(config *rest.Config) *atomic.Int32 {
	count := &atomic.Int32{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			count.Add(1)
			return next.RoundTrip(r)
		})
	})
	return count
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// objects returns what was found as `KIND NAME: REASON`.
func objects(c *contents.Contents) []string {
	var list []string
	for _, o := range c.Objects {
		list = append(list, fmt.Sprintf("%s %s: %s", o.GetKind(), o.GetName(), o.Reason))
	}
	return list
}

func claims(c *contents.Contents) []string {
	var list []string
	for _, o := range c.Claims {
		list = append(list, fmt.Sprintf("%s: %s", o.GetName(), o.Reason))
	}
	return list
}

func pods(c *contents.Contents) []string {
	var list []string
	for _, p := range c.Pods {
		list = append(list, p.Name)
	}
	return list
}

// left returns what was left out as `KIND NAME: REASON`, with an exclamation mark if it is missing.
func left(c *contents.Contents) []string {
	var list []string
	for _, l := range c.Left {
		mark := ""
		if l.Missing {
			mark = "!"
		}
		list = append(list, fmt.Sprintf("%s%s %s: %s", mark, l.Kind, l.Name, l.Reason))
	}
	return list
}
