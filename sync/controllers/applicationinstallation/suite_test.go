package applicationinstallation_test

import (
	"context"
	"encoding/json"
	"flag"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/applicationinstallation"
	"waybill.dev/waybill/sync/render/isolated"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) {
	isolated.Main()
	// Those that are parallel wait for a cluster, and not for a processor.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	hub.Main(m)
}

// builder renders charts for all controllers of the tests, as in one process.
var builder = isolated.NewBuilder(isolated.Options{Memory: 256 << 20})

const (
	crds   = "../../../charts/waybill/crds"
	charts = "../../../examples/charts/"
)

// world is that of one test: a cluster that is hub and user cluster in one, on which the
// controller runs, a namespace, and a Helm repository with the example chart `web`.
type world struct {
	*hub.World
	repo *env.HelmRepo
}

var shared struct {
	sync.Mutex
	process *hub.Process
	repo    *env.HelmRepo
}

// newWorld returns a world on the cluster that all tests share. Tests are parallel, after the others, unless they have
// the controller leave that cluster, count requests, need something to happen within seconds, keep processors busy, or
// change what others see: what is offered to the cluster, its kinds, its default classes.
func newWorld(t *testing.T) *world {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "cluster", Pods: true, Audit: true, CRDs: []string{crds}})
	shared.Lock()
	defer shared.Unlock()
	if shared.process == nil {
		shared.process = hub.Start(t, c, setup)
		shared.repo = newChartRepo(t)
	}
	return &world{World: hub.NewWorld(t, c), repo: shared.repo}
}

// apart is held by the test that has a cluster of its own, so that there is one of those at a time.
var apart sync.Mutex

// ownCluster returns a cluster for this test alone.
func ownCluster(t *testing.T, name string) *env.Cluster {
	t.Helper()
	apart.Lock()
	t.Cleanup(apart.Unlock)
	return env.Start(t, env.Options{Name: name, Pods: true, CRDs: []string{crds}})
}

func newChartRepo(t *testing.T) *env.HelmRepo {
	t.Helper()
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	for _, version := range []string{"1.0.0", "1.1.0"} {
		_, err = repo.Push(charts+"web", func(c *chart.Chart) { c.Metadata.Version = version })
		require.NoError(t, err)
	}
	_, err = repo.Push(charts+"web", func(c *chart.Chart) {
		c.Metadata.Name, c.Schema = "open", nil
		c.Templates = []*chart.File{{Name: "templates/extra.yaml", Data: []byte("{{ range .Values.extraDeploy }}\n---\n{{ tpl (toYaml .) $ }}\n{{ end }}\n")}}
	})
	require.NoError(t, err)
	return repo
}

// setup runs the controller, which drives the cluster that its own objects live in.
func setup(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
	if err := drive(ctx, mgr, s); err != nil {
		return err
	}
	s.Clusters.Ensure(local, "local", nil)
	return nil
}

// drive runs the controller for the clusters of the registry.
func drive(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
	r := &applicationinstallation.Reconciler{
		Hub:             mgr.GetClient(),
		Clusters:        s.Clusters,
		Secrets:         s.Secrets,
		HubID:           s.HubID,
		Git:             s.Git,
		Charts:          s.Charts,
		Templates:       builder,
		SystemNamespace: hub.SystemNamespace,
	}
	return r.SetupWithManager(ctx, mgr)
}

// webSource is the example chart `web` of the Helm repository.
func (w *world) webSource(version string) v1alpha1.ApplicationSource {
	return v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: w.repo.URL(), ChartName: "web", ChartVersion: version}}
}

// define creates a definition with the versions 1.0.0 and 1.1.0 of the chart `web`, changed
// by change. It is named after the test's namespace.
func (w *world) define(change func(*v1alpha1.ApplicationDefinitionSpec)) *v1alpha1.ApplicationDefinition {
	w.T.Helper()
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		definition.Spec.Versions = append(definition.Spec.Versions, v1alpha1.ApplicationVersion{
			Version: version, Template: &v1alpha1.ApplicationTemplate{Source: w.webSource(version)},
		})
	}
	if change != nil {
		change(&definition.Spec)
	}
	w.Create(definition)
	return definition
}

// install creates an installation `web` of version 1.0.0, changed by change.
func (w *world) install(change func(*v1alpha1.ApplicationInstallationSpec)) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	inst := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}},
	}
	if change != nil {
		change(&inst.Spec)
	}
	w.Create(inst)
	return inst
}

// values as a spec holds them.
func values(t *testing.T, v map[string]any) *apiextensionsv1.JSON {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return &apiextensionsv1.JSON{Raw: raw}
}

// releases returns the Secrets in which Helm keeps the revisions of a release.
func (w *world) releases(name string) []corev1.Secret {
	w.T.Helper()
	list := &corev1.SecretList{}
	require.NoError(w.T, w.Client.List(w.T.Context(), list, client.InNamespace(w.Namespace), client.MatchingLabels{"owner": "helm", "name": name}))
	return list.Items
}

func (w *world) deployment(name string) *appsv1.Deployment {
	w.T.Helper()
	d := &appsv1.Deployment{}
	require.True(w.T, w.Exists(d, name), "Deployment %s is not there", name)
	return d
}

func (w *world) page(name string) string {
	w.T.Helper()
	cm := &corev1.ConfigMap{}
	require.True(w.T, w.Exists(cm, name), "ConfigMap %s is not there", name)
	all := ""
	for _, value := range cm.Data {
		all += value
	}
	return all
}

// peekDeployment is the Deployment of that name, nil where there is none.
func (w *world) peekDeployment(name string) *appsv1.Deployment {
	w.T.Helper()
	d := &appsv1.Deployment{}
	if !w.Exists(d, name) {
		return nil
	}
	return d
}

// settle changes what makes no difference to what is installed, and waits until that was observed.
func (w *world) settle(inst *v1alpha1.ApplicationInstallation) {
	w.T.Helper()
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		if i.Spec.DeployOptions == nil {
			i.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{}}
		}
		i.Spec.DeployOptions.Helm.HistoryLimit++
	})
	hub.Await(w.World, inst, "the change is observed", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.ObservedGeneration == i.Generation
	})
}

func objectMeta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// protectedMeta is that of an object which values of installations without an account may come from.
func protectedMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}}
}

func metaAnnotate(o client.Object, key, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	o.SetAnnotations(annotations)
}

func inNamespace(w *world) client.ListOption { return client.InNamespace(w.Namespace) }

// chartVersion is the version of an example chart.
func chartVersion(t *testing.T, name string) string {
	t.Helper()
	c, err := loader.Load(charts + name)
	require.NoError(t, err)
	return c.Metadata.Version
}
