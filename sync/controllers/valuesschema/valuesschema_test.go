package valuesschema_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/valuesschema"
	"waybill.dev/waybill/sync/render/values/schema"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func TestMain(m *testing.M) { hub.Main(m) }

const webChart = "../../../examples/charts/web"

func newWorld(t *testing.T) *hub.World {
	t.Helper()
	return hub.NewWorld(t, env.Shared(t, env.Options{Name: "hub", NoControllers: true, CRDs: []string{"../../../charts/waybill/crds"}}))
}

func start(w *hub.World, options ...func(*valuesschema.Reconciler)) *hub.Process {
	return hub.Start(w.T, w.Cluster, func(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
		r := &valuesschema.Reconciler{
			Client: mgr.GetClient(), Charts: s.Charts, Git: s.Git, Secrets: s.Secrets, SystemNamespace: hub.SystemNamespace,
		}
		for _, option := range options {
			option(r)
		}
		return r.SetupWithManager(ctx, mgr)
	})
}

// patient asks nothing that has failed again by time.
func patient(r *valuesschema.Reconciler) {
	r.Backoff = func(int) time.Duration { return time.Hour }
}

// push adds a version of the chart web to a repository; change edits it.
func push(t *testing.T, repo *env.HelmRepo, version string, change func(*chart.Chart)) {
	t.Helper()
	_, err := repo.Push(webChart, func(c *chart.Chart) {
		c.Metadata.Version = version
		if change != nil {
			change(c)
		}
	})
	require.NoError(t, err)
}

func definition(name string, repo *env.HelmRepo, versions ...string) *v1alpha1.ApplicationDefinition {
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, v := range versions {
		d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{Version: v, Template: &v1alpha1.ApplicationTemplate{
			Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: repo.URL(), ChartName: "web", ChartVersion: v}},
		}})
	}
	return d
}

// await waits until something is known of as many versions.
func await(w *hub.World, d *v1alpha1.ApplicationDefinition, versions int) *v1alpha1.ApplicationDefinition {
	w.T.Helper()
	return hub.Await(w, d, "schemas are known", func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.ValuesSchemas) == versions })
}

func stored(w *hub.World, definition string) *corev1.ConfigMap {
	w.T.Helper()
	found := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: hub.SystemNamespace, Name: schema.ConfigMapName(definition)}
	require.NoError(w.T, client.IgnoreNotFound(w.Client.Get(w.T.Context(), key, found)))
	return found
}

// K48: the schema of each chart is read once, kept once for versions that share it, and found again by
// the next process without a request.
func TestSchemas_areLearnedOnce(t *testing.T) {
	w := newWorld(t)
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	push(t, repo, "1.0.0", nil)
	push(t, repo, "1.1.0", nil)
	push(t, repo, "1.2.0", func(c *chart.Chart) { c.Schema = nil })
	push(t, repo, "1.3.0", func(c *chart.Chart) { c.Schema = []byte(`{"maximum": 1e900000}`) })
	push(t, repo, "1.4.0", func(c *chart.Chart) { c.Schema = []byte(`{"properties": {"replicas": {"type": "string"}}}`) })
	p := start(w)
	d := definition("web", repo, "1.0.0", "1.1.0", "1.2.0", "1.3.0")
	w.Create(d)
	d = await(w, d, 4)

	first := d.GetValuesSchema("1.0.0")
	require.NotEmpty(t, first.Digest)
	assert.Equal(t, first.Digest, d.GetValuesSchema("1.1.0").Digest)
	assert.Equal(t, v1alpha1.ValuesSchema{Version: "1.2.0", Source: d.GetValuesSchema("1.2.0").Source}, *d.GetValuesSchema("1.2.0"))
	assert.Contains(t, d.GetValuesSchema("1.3.0").Message, "values are checked only when the chart is rendered")
	kept := stored(w, "web")
	require.Len(t, kept.BinaryData, 1)
	assert.Equal(t, d.UID, kept.OwnerReferences[0].UID)
	encoded, err := schema.Unpack(kept.BinaryData[first.Digest], first.Digest)
	require.NoError(t, err)
	assert.Contains(t, string(encoded), "Web servers")

	p.Stop()
	asked := len(repo.Requests())
	p = start(w)
	t.Cleanup(p.Stop)
	hub.Change(w, d, func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.Versions = append(d.Spec.Versions[1:], definition("web", repo, "1.4.0").Spec.Versions...)
	})
	hub.Await(w, d, "the new version is known, and the old one is not", func(d *v1alpha1.ApplicationDefinition) bool {
		return d.GetValuesSchema("1.4.0") != nil && d.GetValuesSchema("1.0.0") == nil
	})
	assert.Len(t, stored(w, "web").BinaryData, 2, "1.1.0 has the schema that 1.0.0 had")
	for _, request := range repo.Requests()[asked:] {
		assert.NotContains(t, request.Path, "web-1.1.0", "what is known is not fetched again")
	}
}

// K48: a source that cannot be read holds up no other, and is asked again.
func TestSchemas_ofASourceThatIsDown(t *testing.T) {
	w := newWorld(t)
	broken, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(broken.Stop)
	well, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(well.Stop)
	push(t, broken, "1.0.0", nil)
	push(t, well, "2.0.0", nil)
	var down atomic.Bool
	down.Store(true)
	broken.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(rw, "maintenance", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(rw, r)
		})
	})
	p := start(w)
	t.Cleanup(p.Stop)
	d := definition("half", broken, "1.0.0")
	d.Spec.Versions = append(d.Spec.Versions, definition("half", well, "2.0.0").Spec.Versions...)
	w.Create(d)
	d = await(w, d, 1)
	assert.Equal(t, "2.0.0", d.Status.ValuesSchemas[0].Version)

	down.Store(false)
	d = await(w, d, 2)
	assert.Equal(t, d.GetValuesSchema("2.0.0").Digest, d.GetValuesSchema("1.0.0").Digest)
}

// K45, C45: nothing is asked for copies, whose hub knows their schemas, nor for a chart at a branch.
func TestSchemas_areNotLearned(t *testing.T) {
	w := newWorld(t)
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	push(t, repo, "1.0.0", nil)
	p := start(w)
	t.Cleanup(p.Stop)
	copied := definition("copied", repo, "1.0.0")
	copied.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "another hub"}
	copied.Spec.Versions[0].Template = nil
	w.Create(copied)
	moving := definition("moving", repo, "1.0.0")
	moving.Spec.Versions[0].Template.Source = v1alpha1.ApplicationSource{Git: &v1alpha1.GitSource{Remote: strings.Replace(repo.URL(), "http:", "https:", 1)}}
	w.Create(moving)
	last := definition("last", repo, "1.0.0")
	last.Annotations = copied.Annotations // with its templates, as a seed has it: it is installed from there
	w.Create(last)
	await(w, last, 1)
	for _, d := range []*v1alpha1.ApplicationDefinition{copied, moving} {
		require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		assert.Empty(t, d.Status.ValuesSchemas, d.Name)
	}
}

// K20, K48: a chart at a commit of a repository never changes, so its values are checked at admission like those of
// any other, with the credentials of the repository.
func TestSchemas_ofAChartInGit(t *testing.T) {
	w := newWorld(t)
	_, repo := hub.NewRepo(t)
	commit, err := repo.CommitFS(t.Context(), "", os.DirFS("../../../examples"))
	require.NoError(t, err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hub.SystemNamespace, Name: w.Namespace}, Data: map[string][]byte{"ca.crt": hub.Authority(t)}}
	w.Create(secret)
	p := start(w)
	t.Cleanup(p.Stop)
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	d.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: &v1alpha1.ApplicationTemplate{
		Source: v1alpha1.ApplicationSource{Git: &v1alpha1.GitSource{
			Remote: repo.URL(), Ref: &v1alpha1.GitReference{Branch: "main", Commit: commit}, Path: "charts/web",
			Credentials: &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: secret.Name}},
		}},
	}}}
	w.Create(d)
	hub.Change(w, secret, func(s *corev1.Secret) { s.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "git"} })
	d = await(w, d, 1)
	digest := d.GetValuesSchema("1.0.0").Digest
	require.NotEmpty(t, digest)
	encoded, err := schema.Unpack(stored(w, d.Name).BinaryData[digest], digest)
	require.NoError(t, err)
	assert.Contains(t, string(encoded), "Web servers")
}
