package application_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/application"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

const crds = "../../../charts/waybill/crds"

// world is that of one test: a namespace on a cluster on which the controller runs.
type world struct{ *hub.World }

var shared struct {
	sync.Mutex
	process *hub.Process
}

// sharedCluster is used by all tests that leave it as it is.
func sharedCluster(t *testing.T) *env.Cluster {
	return env.Shared(t, env.Options{Name: "cluster", Pods: true, Audit: true, CRDs: []string{crds}})
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := sharedCluster(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.process == nil {
		shared.process = hub.Start(t, c, setup)
	}
	return &world{hub.NewWorld(t, c)}
}

func setup(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
	r := &application.Reconciler{
		Client:   mgr.GetClient(),
		Recorder: mgr.GetEventRecorder("application"),
		Cluster:  s.Clusters.Local(),
	}
	return r.SetupWithManager(ctx, mgr)
}

// labels of everything that the tests' Application selects.
func labels() map[string]string { return map[string]string{"app": "shop"} }

// annotated marks an object as Application `shop`'s.
func annotated() map[string]string { return map[string]string{v1alpha1.ApplicationAnnotation: "shop"} }

// shop is the Application `shop`, which selects by labels and has these components.
func shop(components ...v1alpha1.ApplicationComponent) *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: v1alpha1.ApplicationSpec{
			Type:       "shop",
			Selector:   &metav1.LabelSelector{MatchLabels: labels()},
			Components: components,
		},
	}
}

func named(kind, name string) v1alpha1.ApplicationComponent {
	return v1alpha1.ApplicationComponent{Kind: kind, Name: name}
}

func deploymentNamed(name string) v1alpha1.ApplicationComponent {
	return v1alpha1.ApplicationComponent{Group: "apps", Kind: "Deployment", Name: name}
}

// member is the metadata of an object of the shop.
func member(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: labels(), Annotations: annotated()}
}

func configMap(meta metav1.ObjectMeta) *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: meta} }

func secret(meta metav1.ObjectMeta) *corev1.Secret { return &corev1.Secret{ObjectMeta: meta} }

func deployment(meta metav1.ObjectMeta, replicas int32) *appsv1.Deployment {
	pods := map[string]string{"pods": meta.Name}
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: pods},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pods},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
			},
		},
	}
}

// awaitComponents waits until status.componentsReady of the newest generation says so.
func (w *world) awaitComponents(app *v1alpha1.Application, ready string) {
	w.T.Helper()
	hub.Await(w.World, app, "componentsReady is not "+ready, func(app *v1alpha1.Application) bool {
		return app.Status.ComponentsReady == ready && app.Status.ObservedGeneration == app.Generation
	})
}

// awaitOwned waits until an object refers to the Application as its owner, or does not any
// more.
func (w *world) awaitOwned(o client.Object, app *v1alpha1.Application, owned bool) {
	w.T.Helper()
	require.True(w.T, w.Eventually(func() bool {
		return w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(o), o) == nil && refersTo(o, app.UID) == owned
	}), "owned is not %t: %+v", owned, o.GetOwnerReferences())
}

func refersTo(o client.Object, uid types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// component returns the status of a component; its zero value where there is none.
func component(app *v1alpha1.Application, kind, name string) v1alpha1.ComponentStatus {
	for _, c := range app.Status.Components {
		if c.Kind == kind && c.Name == name {
			return c
		}
	}
	return v1alpha1.ComponentStatus{}
}

// delete deletes an object and waits until it is gone.
func (w *world) delete(o client.Object, options ...client.DeleteOption) {
	w.T.Helper()
	require.NoError(w.T, client.IgnoreNotFound(w.Client.Delete(w.T.Context(), o, options...)))
	require.True(w.T, w.Eventually(func() bool {
		return apierrors.IsNotFound(w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(o), o))
	}), "%T %s is not deleted", o, o.GetName())
}

func reasonOf(app *v1alpha1.Application, condition string) string {
	return conditions.GetReason(app, condition)
}

func statusOf(app *v1alpha1.Application, condition string) metav1.ConditionStatus {
	return conditions.Get(app, condition).Status
}

func inNamespace(w *world) client.ListOption { return client.InNamespace(w.Namespace) }

func orphan() client.DeleteOption { return client.PropagationPolicy(metav1.DeletePropagationOrphan) }

func namespaceUID(w *world) types.UID {
	w.T.Helper()
	ns := &corev1.Namespace{}
	require.True(w.T, w.ExistsIn("", ns, w.Namespace))
	return ns.UID
}

// keptSettings creates a component of the shop that its namespace owns too: so the garbage collector
// does not delete it for a reference to what is no more.
func (w *world) keptSettings() *corev1.ConfigMap {
	w.T.Helper()
	settings := configMap(member("settings"))
	settings.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: w.Namespace, UID: namespaceUID(w)}}
	w.Create(settings)
	return settings
}

func name(prefix string, i int) string { return fmt.Sprintf("%s-%03d", prefix, i) }

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func toUnstructured(t *testing.T, o any, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u
}
