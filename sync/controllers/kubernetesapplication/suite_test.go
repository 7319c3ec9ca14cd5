package kubernetesapplication_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

// crds are those of the product, as the chart ships them.
const crds = "../../../charts/waybill/crds"

// world is that of one test: a namespace on a hub on which the controller runs. What the
// controller of resources would do, the test does.
type world struct {
	*hub.World
	process *hub.Process
}

var shared struct {
	sync.Mutex
	process *hub.Process
}

// newWorld returns a world on the hub that all tests share.
func newWorld(t *testing.T) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "hub", Audit: true, CRDs: []string{crds}})
	shared.Lock()
	defer shared.Unlock()
	if shared.process == nil {
		shared.process = hub.Start(t, c, setup)
	}
	return &world{World: hub.NewWorld(t, c), process: shared.process}
}

// newOwnWorld returns a world on a hub where nothing runs before start: no process of another
// test, and no garbage collector.
func newOwnWorld(t *testing.T) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "own", Audit: true, NoControllers: true, CRDs: []string{crds}})
	return &world{World: hub.NewWorld(t, c)}
}

// start runs the controller, after the end of an earlier one.
func (w *world) start() {
	w.T.Helper()
	if w.process != nil {
		w.process.Stop()
	}
	w.process = hub.Start(w.T, w.Cluster, setup)
	w.T.Cleanup(w.process.Stop)
}

func setup(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
	r := &kubernetesapplication.Reconciler{
		Client:   mgr.GetClient(),
		Recorder: mgr.GetEventRecorder("waybill-sync"),
		Clusters: s.Clusters,
		HubID:    s.HubID,
		Direct:   mgr.GetAPIReader(),
	}
	return r.SetupWithManager(ctx, mgr)
}

// user is a user cluster, behind a gate.
type user struct {
	gate    *env.Gate
	key     types.NamespacedName
	cluster *env.Cluster
}

// addCluster makes a KubernetesCluster of the one API server that is shared by all tests,
// with labels, and connects it.
func (w *world) addCluster(name string, labels map[string]string) *user {
	w.T.Helper()
	return w.addClusterOf(env.Shared(w.T, env.Options{Name: "user", NoControllers: true}), name, labels)
}

// addOther makes a KubernetesCluster of another API server than addCluster: that of the hub.
func (w *world) addOther(name string) *user {
	w.T.Helper()
	return w.addClusterOf(w.Cluster, name, nil)
}

func (w *world) addClusterOf(c *env.Cluster, name string, labels map[string]string) *user {
	w.T.Helper()
	gate, err := env.NewGate(c.Address())
	require.NoError(w.T, err)
	w.T.Cleanup(gate.Close)
	u := &user{gate: gate, key: types.NamespacedName{Namespace: w.Namespace, Name: name}, cluster: c}
	w.Create(&v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	w.connect(u)
	return u
}

// connect has the process under test know a cluster.
func (w *world) connect(u *user) {
	w.T.Helper()
	config, err := u.cluster.AddUser(hub.Identity, "system:masters")
	require.NoError(w.T, err)
	clusters := w.process.Clusters
	clusters.Ensure(u.key, u.key.Name, env.Via(u.gate, config))
	w.T.Cleanup(func() { clusters.Remove(u.key) })
}

// parse reads a manifest.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(json))
	return object
}

// template is a resource template of a manifest.
func template(t *testing.T, name, manifest string) v1alpha1.ResourceTemplate {
	t.Helper()
	made, err := v1alpha1.NewObjectTemplate(parse(t, manifest))
	require.NoError(t, err)
	return v1alpha1.ResourceTemplate{
		Metadata: v1alpha1.ResourceTemplateMetadata{Name: name},
		Spec:     v1alpha1.ResourceTemplateSpec{Template: made},
	}
}

// configMap is a resource template of a ConfigMap.
func configMap(t *testing.T, name string) v1alpha1.ResourceTemplate {
	t.Helper()
	return template(t, name, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}, data: {key: value}}")
}

// application is one that any cluster is good enough for.
func application(name string, templates ...v1alpha1.ResourceTemplate) *v1alpha1.KubernetesApplication {
	return &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.KubernetesApplicationSpec{ClusterSelector: &metav1.LabelSelector{}, ResourceTemplates: templates},
	}
}

// submit creates an application. At the end of the test its resources are released: no controller
// does.
func (w *world) submit(app *v1alpha1.KubernetesApplication) *v1alpha1.KubernetesApplication {
	w.T.Helper()
	w.Create(app)
	w.T.Cleanup(func() {
		_ = w.Client.Delete(context.Background(), app) // else they are recreated
		_ = w.Client.DeleteAllOf(context.Background(), &v1alpha1.KubernetesApplicationResource{}, client.InNamespace(w.Namespace))
		left := w.resources(context.Background())
		_ = each(left, func(kar *v1alpha1.KubernetesApplicationResource) error {
			w.release(kar)
			return nil
		})
	})
	return app
}

// resources returns all resources of the test.
func (w *world) resources(ctx context.Context) []v1alpha1.KubernetesApplicationResource {
	w.T.Helper()
	list := &v1alpha1.KubernetesApplicationResourceList{}
	require.NoError(w.T, w.Client.List(ctx, list, client.InNamespace(w.Namespace)))
	return list.Items
}

// each does something with each of the resources, several at a time.
func each(all []v1alpha1.KubernetesApplicationResource, do func(*v1alpha1.KubernetesApplicationResource) error) error {
	var group errgroup.Group
	group.SetLimit(10)
	for i := range all {
		group.Go(func() error { return do(&all[i]) })
	}
	return group.Wait()
}

// release takes the finalizers off a resource, as its controller does when the object is gone.
func (w *world) release(kar *v1alpha1.KubernetesApplicationResource) {
	_ = w.Client.Patch(context.Background(), kar, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
}

// resource waits for a resource, and reads it.
func (w *world) resource(name string) *v1alpha1.KubernetesApplicationResource {
	w.T.Helper()
	kar := &v1alpha1.KubernetesApplicationResource{}
	w.AwaitThere(kar, name)
	return kar
}

// say writes the status of a resource as its controller would: submitted with an empty
// message, refused with another.
func (w *world) say(name, refusal string) {
	w.T.Helper()
	require.NoError(w.T, w.sayOf(w.resource(name), refusal))
}

// sayOf is say of a resource that was read.
func (w *world) sayOf(kar *v1alpha1.KubernetesApplicationResource, refusal string) error {
	before := kar.DeepCopy()
	kar.Status.ObservedGeneration = kar.Generation
	if refusal == "" {
		kar.Status.State = v1alpha1.StateSubmitted
		conditions.MarkTrue(kar, v1alpha1.SubmittedCondition, v1alpha1.SucceededReason, "submitted")
		conditions.MarkTrue(kar, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "submitted")
	} else {
		kar.Status.State = v1alpha1.StateFailed
		conditions.MarkFalse(kar, v1alpha1.SubmittedCondition, v1alpha1.ApplyFailedReason, "%s", refusal)
		conditions.MarkFalse(kar, v1alpha1.ReadyCondition, v1alpha1.ApplyFailedReason, "%s", refusal)
	}
	return w.Client.Status().Patch(w.T.Context(), kar, client.MergeFrom(before))
}

// awaitState waits until an application is in a state.
func (w *world) awaitState(app *v1alpha1.KubernetesApplication, state v1alpha1.ApplicationState) *v1alpha1.KubernetesApplication {
	w.T.Helper()
	return hub.Await(w.World, app, "not "+string(state), func(app *v1alpha1.KubernetesApplication) bool {
		return app.Status.State == state && app.Status.ObservedGeneration == app.Generation
	})
}

// awaitMessage waits until the condition Ready of an application says something.
func (w *world) awaitMessage(app *v1alpha1.KubernetesApplication, text string) {
	w.T.Helper()
	hub.Await(w.World, app, "Ready never says "+text, func(app *v1alpha1.KubernetesApplication) bool {
		return strings.Contains(conditions.GetMessage(app, v1alpha1.ReadyCondition), text)
	})
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
