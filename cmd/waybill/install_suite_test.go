package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/applicationinstallation"
	"waybill.dev/waybill/test/env"
	testhub "waybill.dev/waybill/test/hub"
)

// store is a cluster that installs what it is asked for until the end of the test, with a definition of
// the chart web in three versions, of which the last one is broken.
type store struct {
	*env.Cluster
	client.Client

	t          *testing.T
	namespace  string
	repo       *env.HelmRepo
	definition *v1alpha1.ApplicationDefinition
}

func newStore(t *testing.T) *store {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	cluster := env.Shared(t, env.Options{Name: "agent", NoControllers: true, CRDs: []string{"../../charts/waybill/crds"}})
	process := testhub.Start(t, cluster, func(ctx context.Context, mgr ctrl.Manager, s testhub.Shared) error {
		r := &applicationinstallation.Reconciler{
			Hub: mgr.GetClient(), Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID, Git: s.Git, Charts: s.Charts,
			SystemNamespace: testhub.SystemNamespace,
		}
		if err := r.SetupWithManager(ctx, mgr); err != nil {
			return err
		}
		s.Clusters.Ensure(types.NamespacedName{Namespace: testhub.SystemNamespace, Name: "local"}, "local", nil)
		return nil
	})
	t.Cleanup(process.Stop)
	s := &store{Cluster: cluster, Client: clientOf(t, cluster), t: t, namespace: cluster.Namespace(t), repo: webRepo(t)}
	s.definition = &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web-" + s.namespace}}
	s.definition.Spec.DefaultVersion = "1.1.0"
	s.definition.Spec.DefaultValues = raw(t, map[string]any{"page": map[string]any{"title": "of the definition"}})
	for _, version := range []string{"2.0.0", "1.1.0", "1.0.0"} {
		s.definition.Spec.Versions = append(s.definition.Spec.Versions, v1alpha1.ApplicationVersion{
			Version: version, Deprecated: version == "1.0.0", Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{
				Helm: &v1alpha1.HelmSource{URL: s.repo.URL(), ChartName: "web", ChartVersion: version},
			}},
		})
	}
	create(t, s.Client, s.definition)
	return s
}

// webRepo returns a Helm repository with the chart web, of which nothing has to run. What 2.0.0 makes is
// refused by any API server.
func webRepo(t *testing.T) *env.HelmRepo {
	t.Helper()
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		pushWeb(t, repo, version)
	}
	return repo
}

func pushWeb(t *testing.T, repo *env.HelmRepo, version string) {
	t.Helper()
	_, err := repo.Push("../../examples/charts/web", func(c *chart.Chart) {
		c.Metadata.Version = version
		c.Templates = slices.DeleteFunc(c.Templates, func(f *chart.File) bool {
			return !strings.HasSuffix(f.Name, "configmap.yaml") && !strings.HasSuffix(f.Name, ".tpl")
		})
		if version == "2.0.0" {
			c.Templates = append(c.Templates, &chart.File{Name: "templates/broken.yaml", Data: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: broken}\n")})
		}
	})
	require.NoError(t, err)
}

func raw(t *testing.T, values map[string]any) *apiextensionsv1.JSON {
	t.Helper()
	text, err := json.Marshal(values)
	require.NoError(t, err)
	return &apiextensionsv1.JSON{Raw: text}
}

// run runs the program in the namespace of the test.
func (s *store) run(args ...string) result {
	s.t.Helper()
	return waybill(s.t, s.Cluster, append(args, "-n", s.namespace)...)
}

// succeeds runs the program, and returns what it prints.
func (s *store) succeeds(args ...string) string {
	s.t.Helper()
	got := s.run(args...)
	require.Equal(s.t, 0, got.code, got.out+got.errOut)
	return strings.NewReplacer(s.namespace, "NS").Replace(timeless(got.out))
}

// installation returns the installation of that name.
func (s *store) installation(name string) *v1alpha1.ApplicationInstallation {
	s.t.Helper()
	inst := &v1alpha1.ApplicationInstallation{}
	require.NoError(s.t, s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, inst))
	return inst
}

// page returns the page that an installation serves.
func (s *store) page(name string) string {
	s.t.Helper()
	config := &corev1.ConfigMap{}
	require.NoError(s.t, s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, config))
	return config.Data["index.html"]
}

// refuses runs the program, which ends with a code and says these texts.
func (s *store) refuses(code int, args []string, texts ...string) {
	s.t.Helper()
	got := s.run(args...)
	assert.Equal(s.t, code, got.code, got.out+got.errOut)
	for _, text := range texts {
		assert.Contains(s.t, got.errOut, text)
	}
}
