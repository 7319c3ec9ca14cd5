package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

const (
	// applicationCount is the number of Applications, and namespaceCount that of their namespaces.
	applicationCount = 1000
	namespaceCount   = 20
	// componentCount is how many components each Application has: two of each of five kinds.
	componentCount = 10
	// processLimit is how long it may take until 10,000 objects are processed.
	processLimit = 10 * time.Minute
)

// appCluster is a cluster with 1,000 Applications of 10 components each, one of the kinds custom.
type appCluster struct {
	*hub
	apps *observe.View
}

// sharedApps is the cluster that the rows of the group share, because filling it takes longer than
// most measurements. It is nil before the first row, and after one that failed, which may have left
// anything behind.
var sharedApps *env.Cluster

// stopAppCluster ends the group: the cluster would slow down the next.
func stopAppCluster() {
	if sharedApps != nil {
		sharedApps.Stop()
		sharedApps = nil
	}
}

// openAppCluster returns the shared cluster with the 10,000 objects. The Applications may not exist
// yet.
func openAppCluster(b *testing.B) *appCluster {
	b.Helper()
	b.Cleanup(func() {
		if b.Failed() {
			stopAppCluster()
		}
	})
	filled := sharedApps != nil
	if !filled {
		cluster, err := env.StartCluster(b.Context(), env.Options{Name: "applications", Audit: true, CRDs: []string{ourCRDs, benchCRDs}})
		require.NoError(b, err)
		sharedApps = cluster
	}
	c := &appCluster{hub: hubOf(b, sharedApps)}
	if !filled {
		c.namespace(b, system)
		for i := range namespaceCount {
			c.namespace(b, applicationNamespace(i))
		}
		newFloor(b, c.RESTConfig(), connections).apply(b, prepare(b, allComponents()))
	}
	c.apps = c.view(b, applications, "")
	return c
}

// startAppCluster returns the shared cluster with all Applications, whose components are owned
// already. No process of Waybill is running.
func startAppCluster(b *testing.B) *appCluster {
	b.Helper()
	c := openAppCluster(b)
	if len(c.apps.All()) == 0 {
		c.createApplications(b)
		process := startAgent(b, c.hub)
		c.await(b, applicationCount, allThere)
		require.NoError(b, process.Kill())
	}
	return c
}

// createApplications returns the UIDs of the new Applications.
func (c *appCluster) createApplications(b *testing.B) []types.UID {
	b.Helper()
	uids := make([]types.UID, applicationCount)
	require.NoError(b, parallel(applicationCount, func(i int) error {
		app := application(applicationNamespace(i), applicationName(i), "ConfigMap", "Secret", "Service", "Deployment.apps", "Report.bench.waybill.dev")
		created, err := c.client.Resource(applications).Namespace(app.GetNamespace()).Create(b.Context(), app, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		uids[i] = created.GetUID()
		return nil
	}))
	return uids
}

// startSettled starts a fresh agent, and returns when it has written every status and has nothing
// left to do.
func (c *appCluster) startSettled(b *testing.B) waybill {
	b.Helper()
	c.spoilStatuses(b)
	process := startAgent(b, c.hub)
	c.await(b, applicationCount, allThere)
	<-time.After(settling)
	return process
}

// spoilStatuses makes every status wrong, so that it shows when a process has written it.
func (c *appCluster) spoilStatuses(b *testing.B) {
	b.Helper()
	require.NoError(b, parallel(applicationCount, func(i int) error {
		_, err := c.client.Resource(applications).Namespace(applicationNamespace(i)).Patch(b.Context(), applicationName(i), types.MergePatchType,
			[]byte(`{"status":{"componentsReady":"","components":null,"installed":null}}`), metav1.PatchOptions{}, "status")
		return err
	}))
	c.await(b, 0, allThere)
}

func (c *appCluster) await(b *testing.B, want int, match observe.Match) {
	b.Helper()
	awaitFor(b, processLimit, c.apps, want, match)
}

func applicationNamespace(i int) string { return fmt.Sprintf("team-%02d", i%namespaceCount) }
func applicationName(i int) string      { return fmt.Sprintf("app-%04d", i) }

// application returns an Application of the objects with its name as their label app, of kinds of
// the form `<kind>.<group>`.
func application(namespace, name string, kinds ...string) *unstructured.Unstructured {
	var components []any
	for _, listed := range kinds {
		kind, group, _ := strings.Cut(listed, ".")
		components = append(components, map[string]any{"group": group, "kind": kind})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationKind,
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{
			"type":       "bench",
			"selector":   map[string]any{"matchLabels": map[string]any{"app": name}},
			"components": components,
		},
	}}
}

// allComponents returns the objects of all Applications, one after the other.
func allComponents() []string {
	var manifests []string
	for i := range applicationCount {
		manifests = append(manifests, componentManifests(i)...)
	}
	return manifests
}

// componentManifests returns the objects of an Application. The Deployments have no replicas: they
// are healthy as soon as their controller has seen them. The Reports are healthy without a status.
func componentManifests(i int) []string {
	var manifests []string
	text := strings.Repeat("x", 512)
	for n := range componentCount / 5 {
		head := fmt.Sprintf("metadata: {name: %s-%d, namespace: %s, labels: {app: %[1]s}}\n", applicationName(i), n, applicationNamespace(i))
		manifests = append(manifests,
			"apiVersion: v1\nkind: ConfigMap\n"+head+"data: {text: "+text+"}\n",
			"apiVersion: v1\nkind: Secret\n"+head+"stringData: {text: "+text+"}\n",
			"apiVersion: v1\nkind: Service\n"+head+"spec: {clusterIP: None, selector: {app: "+applicationName(i)+"}}\n",
			"apiVersion: bench.waybill.dev/v1\nkind: Report\n"+head+"spec: {text: "+text+"}\n",
			"apiVersion: apps/v1\nkind: Deployment\n"+head+fmt.Sprintf(`spec:
  replicas: 0
  selector: {matchLabels: {app: %s, part: "%d"}}
  template:
    metadata: {labels: {app: %[1]s, part: "%d"}}
    spec: {containers: [{name: web, image: "nginx:1.29-alpine"}]}
`, applicationName(i), n, n))
	}
	return manifests
}

// componentsReady matches an Application with that status.componentsReady.
func componentsReady(count, of int) observe.Match {
	return observe.Has(fmt.Sprintf("%d/%d", count, of), "status", "componentsReady")
}

// allThere matches an Application all of whose components exist and are owned.
func allThere(o *observe.Object) bool {
	if !componentsReady(componentCount, componentCount)(o) {
		return false
	}
	components, _, _ := unstructured.NestedSlice(o.Object, "status", "components") // none is not all
	for _, c := range components {
		if fields, ok := c.(map[string]any); !ok || fields["owned"] != true {
			return false
		}
	}
	return len(components) == componentCount
}
