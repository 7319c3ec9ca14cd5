package env

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"waybill.dev/waybill/api/v1alpha1"
)

// Namespace creates a namespace with a unique name for one test, and vacates it at the end of the test,
// as Vacate does. Unless the cluster has no controllers, the namespace has its ServiceAccount `default`
// already.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	ns, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { c.Vacate(ns.Name) })
	if !c.options.NoControllers {
		awaitAccount(t, client, ns.Name)
	}
	return ns.Name
}

// acting are the kinds besides Waybill's own whose objects keep controllers at work, by where etcd has them.
var acting = map[string]schema.GroupVersionResource{
	"deployments":            {Group: "apps", Version: "v1", Resource: "deployments"},
	"statefulsets":           {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"daemonsets":             {Group: "apps", Version: "v1", Resource: "daemonsets"},
	"cronjobs":               {Group: "batch", Version: "v1", Resource: "cronjobs"},
	"jobs":                   {Group: "batch", Version: "v1", Resource: "jobs"},
	"pods":                   {Version: "v1", Resource: "pods"},
	"persistentvolumeclaims": {Version: "v1", Resource: "persistentvolumeclaims"},
	"snapshot.storage.k8s.io/volumesnapshots": {Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"},
}

// Vacate requests the deletion of all objects of a namespace that keep controllers at work, without
// waiting for it: what a test has left there shall not disturb others. The namespace itself, and what
// nothing acts on, go with the cluster: for each namespace that is deleted, kube-controller-manager
// makes two requests for each kind there is, which was a fifth of what some packages cost.
func (c *Cluster) Vacate(namespace string) {
	// The test's own context has ended, and a cluster that the test killed does not answer.
	ctx, cancel := cleanupContext()
	defer cancel()
	if c.options.NoControllers { // then nothing but the namespace's phase comes of it
		c.deleteNamespace(ctx, namespace)
		return
	}
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		return
	}
	background := metav1.DeletePropagationBackground
	for left := range c.leftIn(ctx, namespace) {
		_ = client.Resource(left).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	}
}

func (c *Cluster) deleteNamespace(ctx context.Context, name string) {
	if client, err := kubernetes.NewForConfig(c.RESTConfig()); err == nil {
		_ = client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	}
}

// leftIn returns the resources of a namespace that keep controllers at work. It asks etcd, once, rather
// than the API server for each of them.
func (c *Cluster) leftIn(ctx context.Context, namespace string) map[schema.GroupVersionResource]bool {
	folders := []string{"/registry/" + v1alpha1.GroupVersion.Group + "/"}
	for folder := range acting {
		folders = append(folders, "/registry/"+folder+"/"+namespace+"/")
	}
	keys, err := c.etcdKeys(ctx, folders)
	if err != nil {
		return nil // it is not there any more, and neither is the cluster
	}
	left := map[schema.GroupVersionResource]bool{}
	for _, key := range keys {
		folder, rest, ok := strings.Cut(strings.TrimPrefix(key, "/registry/"), "/"+namespace+"/")
		if !ok || strings.Contains(rest, "/") {
			continue // of another namespace
		}
		if resource, ours := strings.CutPrefix(folder, v1alpha1.GroupVersion.Group+"/"); ours {
			left[v1alpha1.GroupVersion.WithResource(resource)] = true
			continue
		}
		left[acting[folder]] = true
	}
	return left
}
