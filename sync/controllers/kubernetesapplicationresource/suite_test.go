package kubernetesapplicationresource_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/kubernetesapplicationresource"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

// crds are those of the product, as the chart ships them.
const crds = "../../../charts/waybill/crds"

// ownProcess is the label of KubernetesClusters that a test serves with a process of its own.
const ownProcess = "own-process"

// world is that of one test: a namespace on a hub on which the controller runs, and one in a
// user cluster that the hub knows as berlin.
type world struct {
	*hub.World
	process *hub.Process
	berlin  *user
}

// user is a namespace in a user cluster, behind a gate.
type user struct {
	*hub.World
	gate *env.Gate
	key  types.NamespacedName
}

var shared struct {
	sync.Mutex
	process *hub.Process
}

// newWorld returns a world on the hub that all tests share.
func newWorld(t *testing.T) *world {
	t.Helper()
	c := clusters(t)[0]
	shared.Lock()
	if shared.process == nil {
		shared.process = start(t, "!"+ownProcess)
	}
	shared.Unlock()
	w := &world{World: hub.NewWorld(t, c), process: shared.process}
	w.berlin = w.addCluster("berlin", nil)
	return w
}

// newOwnWorld returns a world that the shared process does not serve; start serves it.
func newOwnWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: hub.NewWorld(t, clusters(t)[0])}
	w.berlin = w.addCluster("berlin", map[string]string{ownProcess: w.Namespace})
	return w
}

// restart serves the world with a new process, after the end of the one before.
func (w *world) restart() {
	w.T.Helper()
	w.stop()
	w.process = start(w.T, ownProcess+"="+w.Namespace)
	w.connect(w.berlin)
}

func (w *world) stop() {
	if w.process != nil {
		w.process.Stop()
	}
	w.process = nil
}

func clusters(t *testing.T) []*env.Cluster {
	t.Helper()
	return env.SharedAll(t, env.Options{Name: "hub", Audit: true, CRDs: []string{crds}}, env.Options{Name: "user", Audit: true})
}

// start runs the controller for the KubernetesClusters that a selector selects.
func start(t *testing.T, selector string) *hub.Process {
	t.Helper()
	return startWith(t, selector, func(c client.Client) client.Client { return c })
}

// startWith is like start, with another client.
func startWith(t *testing.T, selector string, wrap func(client.Client) client.Client) *hub.Process {
	t.Helper()
	parsed, err := labels.Parse(selector)
	require.NoError(t, err)
	return hub.Start(t, clusters(t)[0], func(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
		r := &kubernetesapplicationresource.Reconciler{
			Client:          wrap(mgr.GetClient()),
			Recorder:        mgr.GetEventRecorder("waybill-sync"),
			Clusters:        s.Clusters,
			Secrets:         s.Secrets,
			HubID:           s.HubID,
			ClusterSelector: parsed,
		}
		return r.SetupWithManager(ctx, mgr)
	})
}

// addCluster makes a user cluster of the one API server that is shared by all tests, with a
// gate of its own in front.
func (w *world) addCluster(name string, set map[string]string) *user {
	w.T.Helper()
	c := clusters(w.T)[1]
	gate, err := env.NewGate(c.Address())
	require.NoError(w.T, err)
	w.T.Cleanup(gate.Close)
	u := &user{World: hub.NewWorld(w.T, c), gate: gate, key: types.NamespacedName{Namespace: w.Namespace, Name: name}}
	w.Create(&v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}})
	if w.process != nil {
		w.connect(u)
	}
	return u
}

func (w *world) connect(u *user) {
	w.T.Helper()
	config, err := u.Cluster.AddUser(hub.Identity, "system:masters")
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

// template is that of a resource, from a manifest.
func template(t *testing.T, text string) v1alpha1.ObjectTemplate {
	t.Helper()
	made, err := v1alpha1.NewObjectTemplate(parse(t, text))
	require.NoError(t, err)
	return made
}

// resource is a resource of a manifest, scheduled to berlin, with Secrets.
func (w *world) resource(name, manifest string, secrets ...string) *v1alpha1.KubernetesApplicationResource {
	w.T.Helper()
	kar := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.KubernetesApplicationResourceSpec{ClusterName: "berlin", Template: template(w.T, manifest)},
	}
	for _, secret := range secrets {
		kar.Spec.Secrets = append(kar.Spec.Secrets, v1alpha1.ResourceSecretReference{Name: secret})
	}
	return kar
}

// submit creates a resource. What is left of it at the end of the test goes past the
// controller, which may not run any more.
func (w *world) submit(kar *v1alpha1.KubernetesApplicationResource) *v1alpha1.KubernetesApplicationResource {
	w.T.Helper()
	w.Create(kar)
	w.T.Cleanup(func() {
		_ = w.Client.Patch(context.Background(), kar, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
	return kar
}

// configMap is a manifest in the test's namespace of the user cluster.
func (u *user) configMap(name, value string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + u.Namespace + "}, data: {key: '" + value + "'}}"
}

func (u *user) service(name string) string {
	return "{apiVersion: v1, kind: Service, metadata: {name: " + name + ", namespace: " + u.Namespace + "}, spec: {type: LoadBalancer, ports: [{port: 80}]}}"
}

// awaitValue waits until a ConfigMap has a value.
func (u *user) awaitValue(name, value string) *corev1.ConfigMap {
	u.T.Helper()
	cm := &corev1.ConfigMap{}
	require.True(u.T, u.Eventually(func() bool { return u.Exists(cm, name) && cm.Data["key"] == value }), "ConfigMap %s is not %s", name, value)
	return cm
}

func (w *world) secret(name, value string) *corev1.Secret {
	w.T.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"password": []byte(value)}}
	w.Create(secret)
	return secret
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
