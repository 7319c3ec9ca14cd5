package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// connections is how many connections a floor is measured with.
const connections = 20

// floor is a bare program that knows what to send where, and only sends it.
type floor struct {
	host    string
	clients []*http.Client // one connection each
}

// patch is the body of a patch, already encoded, and where it is sent.
type patch struct {
	path string
	body []byte
}

func newFloor(b testing.TB, config *rest.Config, connections int) *floor {
	b.Helper()
	f := &floor{host: config.Host}
	tlsConfig, err := rest.TLSConfigFor(config)
	require.NoError(b, err)
	for range connections {
		transport := &http.Transport{TLSClientConfig: tlsConfig.Clone(), ForceAttemptHTTP2: true}
		b.Cleanup(transport.CloseIdleConnections)
		f.clients = append(f.clients, &http.Client{Transport: transport})
	}
	return f
}

// plurals are the resources of the kinds that rows and bare programs apply.
var plurals = map[string]schema.GroupVersionResource{
	"ConfigMap": configMaps, "Secret": secrets, "Service": services, "ServiceAccount": accounts,
	"Deployment": deployments, "Ingress": ingresses, "Report": reports,
	"VolumeSnapshot": volumeSnapshots,
}

// prepare turns manifests into patches.
func prepare(b testing.TB, manifests []string) []patch {
	b.Helper()
	patches := make([]patch, len(manifests))
	for i, manifest := range manifests {
		body, err := yaml.YAMLToJSON([]byte(manifest))
		require.NoError(b, err)
		o := &unstructured.Unstructured{}
		require.NoError(b, o.UnmarshalJSON(body))
		gvr, known := plurals[o.GetKind()]
		require.True(b, known, o.GetKind())
		patches[i] = patch{path: pathOf(gvr, o.GetNamespace(), o.GetName()), body: body}
	}
	return patches
}

// pathOf returns the path of an object in an API server.
func pathOf(gvr schema.GroupVersionResource, namespace, name string) string {
	root := "/apis/" + gvr.Group + "/" + gvr.Version
	if gvr.Group == "" {
		root = "/api/" + gvr.Version
	}
	return root + "/namespaces/" + namespace + "/" + gvr.Resource + "/" + name
}

// apply applies all patches, and returns after the last answer.
func (f *floor) apply(b testing.TB, patches []patch) {
	b.Helper()
	f.each(b, patches, f.applying)
}

// applying returns the request of a server-side apply.
func (f *floor) applying(p patch) (*http.Request, error) {
	request, err := http.NewRequest(http.MethodPatch, f.host+p.path+"?fieldManager=floor&force=true", bytes.NewReader(p.body))
	if err == nil {
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	return request, err
}

// merging returns the request of a merge patch.
func (f *floor) merging(p patch) (*http.Request, error) {
	request, err := http.NewRequest(http.MethodPatch, f.host+p.path, bytes.NewReader(p.body))
	if err == nil {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	return request, err
}

// remove deletes all objects; dependents are garbage collected later.
func (f *floor) remove(b testing.TB, patches []patch) {
	b.Helper()
	f.each(b, patches, func(p patch) (*http.Request, error) {
		return http.NewRequest(http.MethodDelete, f.host+p.path+"?propagationPolicy=Background", nil)
	})
}

// each sends a request for each patch, over all connections at once.
func (f *floor) each(b testing.TB, patches []patch, build func(patch) (*http.Request, error)) {
	b.Helper()
	require.NoError(b, f.sendAll(patches, build))
}

// sendAll is each for goroutines that do not run the row.
func (f *floor) sendAll(patches []patch, build func(patch) (*http.Request, error)) error {
	queue := make(chan patch, len(patches))
	for _, p := range patches {
		queue <- p
	}
	close(queue)
	var group errgroup.Group
	for _, client := range f.clients {
		group.Go(func() error {
			for p := range queue {
				if err := send(client, build, p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func send(client *http.Client, build func(patch) (*http.Request, error), p patch) error {
	request, err := build(p)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", request.Method, request.URL.Path, response.Status, answer)
	}
	return nil
}
