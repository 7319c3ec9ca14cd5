package seed_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/applicationdefinition"
	"waybill.dev/waybill/sync/controllers/applicationinstallation"
	"waybill.dev/waybill/sync/controllers/gitsync"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication"
	"waybill.dev/waybill/sync/controllers/kubernetesapplicationresource"
	"waybill.dev/waybill/sync/controllers/kubernetescluster"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

// Names of the seed on the hub, and of the user cluster on the seed.
const (
	europe = "europe"
	berlin = "berlin"
	system = hub.SystemNamespace
)

// theHub is the user that the hub is in the seed.
const theHub = "the-hub"

// early is a definition that was there before the seed was.
const early = "early"

// fleet is a hub, a seed and a user cluster, which the tests of this package share. Tests use definitions
// and namespaces of their own.
type fleet struct {
	hub, seed, user client.Client
	hubAt, seedAt   *env.Cluster
	// onHub and onSeed are the controllers of each.
	onHub, onSeed *hub.Process
	// gate is between the hub and the seed.
	gate *env.Gate
	repo *env.HelmRepo
}

var shared struct {
	sync.Mutex
	*fleet
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.fleet == nil {
		shared.fleet = startFleet(t)
	}
	return shared.fleet
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	crds := []string{"../../charts/waybill/crds"}
	clusters := env.SharedAll(t, env.Options{Name: "hub", CRDs: crds, NoControllers: true},
		env.Options{Name: "seed", CRDs: crds, NoControllers: true, Audit: true}, env.Options{Name: "user", NoControllers: true})
	f := &fleet{hubAt: clusters[0], seedAt: clusters[1]}
	for i, c := range []*client.Client{&f.hub, &f.seed, &f.user} {
		built, err := client.New(clusters[i].RESTConfig(), client.Options{Scheme: hub.NewScheme(t)})
		require.NoError(t, err)
		*c = built
	}
	var err error
	f.repo, err = env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	f.publish(t, "1.0.0", "1.1.0")
	f.gate, err = env.NewGate(clusters[1].Address())
	require.NoError(t, err)

	f.onHub, f.onSeed = hub.Start(t, clusters[0], controllers), hub.Start(t, clusters[1], controllers)
	require.NotEqual(t, f.onHub.HubID, f.onSeed.HubID)
	f.define(t, early)
	register(t, f.seed, berlin, clusters[2].Kubeconfig(), v1alpha1.ClusterRoleUser)
	config, err := clusters[1].AddUser(theHub, "system:masters")
	require.NoError(t, err)
	kubeconfig, err := env.Kubeconfig(europe, env.Via(f.gate, config))
	require.NoError(t, err)
	register(t, f.hub, europe, kubeconfig, v1alpha1.ClusterRoleSeed)
	return f
}

// controllers are those of a hub.
func controllers(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
	recorder := mgr.GetEventRecorder("test")
	for _, add := range []interface {
		SetupWithManager(context.Context, ctrl.Manager) error
	}{
		&kubernetescluster.Reconciler{
			Client: mgr.GetClient(), Recorder: recorder, Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID, SystemNamespace: system,
		},
		&gitsync.Reconciler{
			Client: mgr.GetClient(), Recorder: recorder, Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID, Git: s.Git, SystemNamespace: system,
		},
		&applicationdefinition.Reconciler{Client: mgr.GetClient(), Recorder: recorder, Clusters: s.Clusters, HubID: s.HubID},
		&applicationinstallation.Reconciler{
			Hub: mgr.GetClient(), Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID, Git: s.Git, Charts: s.Charts, SystemNamespace: system,
		},
		&kubernetesapplication.Reconciler{
			Client: mgr.GetClient(), Recorder: recorder, Clusters: s.Clusters, HubID: s.HubID, Direct: mgr.GetAPIReader(),
		},
		&kubernetesapplicationresource.Reconciler{
			Client: mgr.GetClient(), Recorder: recorder, Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID,
		},
	} {
		if err := add.SetupWithManager(ctx, mgr); err != nil {
			return err
		}
	}
	return nil
}

// register creates a KubernetesCluster with its Secret in the system namespace.
func register(t *testing.T, at client.Client, name string, kubeconfig []byte, role v1alpha1.ClusterRole) {
	t.Helper()
	require.NoError(t, client.IgnoreAlreadyExists(at.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}, Data: map[string][]byte{"value": kubeconfig},
	})))
	require.NoError(t, at.Create(t.Context(), &v1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name, Labels: map[string]string{"role": string(role)}},
		Spec:       v1alpha1.KubernetesClusterSpec{Role: role, KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: name}},
	}))
}

// publish pushes versions of a chart that is one ConfigMap.
func (f *fleet) publish(t *testing.T, versions ...string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "templates"), 0o700))
	for name, content := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: note\nversion: 0.0.0\n",
		"templates/note.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n" +
			"data:\n  version: {{ .Chart.Version }}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	for _, version := range versions {
		_, err := f.repo.Push(dir, func(c *chart.Chart) { c.Metadata.Version = version })
		require.NoError(t, err)
	}
}

// define creates a definition on the hub, with version 1.0.0.
func (f *fleet) define(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, f.hub.Create(t.Context(), &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ApplicationDefinitionSpec{Description: "a note", Versions: []v1alpha1.ApplicationVersion{f.version("1.0.0")}},
	}))
}

func (f *fleet) version(v string) v1alpha1.ApplicationVersion {
	return v1alpha1.ApplicationVersion{Version: v, Template: &v1alpha1.ApplicationTemplate{
		Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: f.repo.URL(), ChartName: "note", ChartVersion: v}},
	}}
}

// install creates an installation of version 1.0.0 in a namespace of the user cluster, both called like the
// definition, and waits until it is ready.
func (f *fleet) install(t *testing.T, definition string) {
	t.Helper()
	require.NoError(t, f.user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: definition}}))
	require.Eventually(t, func() bool { // its CRD is brought by the seed
		return f.user.Create(t.Context(), &v1alpha1.ApplicationInstallation{
			ObjectMeta: metav1.ObjectMeta{Namespace: definition, Name: "one"},
			Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: definition, Version: "1.0.0"}},
		}) == nil
	}, hub.Limit, often)
	f.awaitInstalled(t, definition, "1.0.0")
}

const often = 20 * time.Millisecond

// awaitInstalled waits until the release is of that version, and says so.
func (f *fleet) awaitInstalled(t *testing.T, definition, version string) {
	t.Helper()
	key := types.NamespacedName{Namespace: definition, Name: "one"}
	await(t, f.user, key, func(i *v1alpha1.ApplicationInstallation) bool {
		return meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ReadyCondition) &&
			i.Status.Application != nil && i.Status.Application.Version == version && i.Status.ObservedGeneration == i.Generation
	})
	await(t, f.user, key, func(c *corev1.ConfigMap) bool { return c.Data["version"] == version })
}

// edit changes an object.
func edit[T any, O interface {
	*T
	client.Object
}](t *testing.T, at client.Client, key types.NamespacedName, change func(O)) {
	t.Helper()
	o := O(new(T))
	require.NoError(t, at.Get(t.Context(), key, o))
	before := o.DeepCopyObject().(O)
	change(o)
	require.NoError(t, at.Patch(t.Context(), o, client.MergeFrom(before)))
}

// await waits until an object is as wanted, and returns it.
func await[T any, O interface {
	*T
	client.Object
}](t *testing.T, at client.Client, key types.NamespacedName, wanted func(O) bool) O {
	t.Helper()
	o := O(new(T))
	ok := eventually(t, func() bool {
		o = O(new(T))
		return at.Get(t.Context(), key, o) == nil && wanted(o)
	})
	require.True(t, ok, "%T %s is never as wanted: %+v", o, key, o)
	return o
}

// awaitGone waits until there is no such object.
func awaitGone(t *testing.T, at client.Client, o client.Object, key types.NamespacedName) {
	t.Helper()
	require.True(t, eventually(t, func() bool { return apierrors.IsNotFound(at.Get(t.Context(), key, o)) }), "%T %s is still there: %+v", o, key, o)
}

func eventually(t *testing.T, ask func() bool) bool {
	t.Helper()
	tick := time.NewTicker(often)
	defer tick.Stop()
	for end := time.Now().Add(hub.Limit); time.Now().Before(end); <-tick.C {
		if ask() {
			return true
		}
	}
	return false
}

func named(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

func inSystem(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: system, Name: name}
}

// ready returns the condition Ready.
func ready(o interface{ GetConditions() []metav1.Condition }) metav1.Condition {
	if found := meta.FindStatusCondition(o.GetConditions(), v1alpha1.ReadyCondition); found != nil {
		return *found
	}
	return metav1.Condition{}
}
