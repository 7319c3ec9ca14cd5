package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// W59, C48, C58, P3: one template that is wrong refuses the whole application.
func TestKubernetesApplication_refuses(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.KubernetesApplication)
		field  string
	}{
		"selector": {"In needs values", func(a *v1alpha1.KubernetesApplication) {
			a.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}
		}, "spec.clusterSelector.matchExpressions[0].values"},
		"template": {"W17", func(a *v1alpha1.KubernetesApplication) {
			a.Spec.ResourceTemplates = append(a.Spec.ResourceTemplates, newResourceTemplate("bad", newObject("a/b/c", "ConfigMap", "bad")))
		}, "spec.resourceTemplates[1].spec.template.apiVersion"},
		"labels": {"W9", func(a *v1alpha1.KubernetesApplication) {
			a.Spec.ResourceTemplates[0].Metadata.Labels = map[string]string{"a": "/"}
		}, "spec.resourceTemplates[0].metadata.labels"},
		"secrets": {"C58", func(a *v1alpha1.KubernetesApplication) {
			a.Spec.ResourceTemplates = []v1alpha1.ResourceTemplate{newResourceTemplate("ns", newObject("v1", "Namespace", "web"))}
			a.Spec.ResourceTemplates[0].Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "sql"}}
		}, "spec.resourceTemplates[0].spec.secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			app := newKubernetesApplication(ns)
			tc.change(app)
			err := admin.Create(t.Context(), app)
			require.True(t, apierrors.IsInvalid(err), "%s: %v", tc.reason, err)
			assert.ErrorContains(t, err, tc.field)
			require.True(t, apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(app), app)))
		})
	}
}

// C36: what opens a cluster never goes to another.
func TestKubernetesApplication_propagatesNoKubeconfig(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	require.NoError(t, admin.Create(t.Context(), newCluster(ns, "berlin")))
	app := newKubernetesApplication(ns)
	app.Spec.ResourceTemplates[0].Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "sql"}, {Name: "berlin"}}
	err := admin.Create(t.Context(), app)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, `spec.resourceTemplates[0].spec.secrets[1]: Forbidden: Secret "berlin" holds the kubeconfig`)

	resource := newKubernetesApplicationResource(ns, newObject("v1", "ConfigMap", "web"))
	resource.Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "berlin"}}
	err = admin.Create(t.Context(), resource)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "spec.secrets[0]: Forbidden")
}

// C40: a client that replaces the application as its file has it does not take its cluster away.
func TestKubernetesApplication_keepsItsCluster(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	app := newKubernetesApplication(c.Namespace(t))
	require.NoError(t, admin.Create(t.Context(), app))
	app.Spec.ClusterName = "berlin"
	require.NoError(t, admin.Update(t.Context(), app))

	file := newKubernetesApplication(app.Namespace)
	file.ResourceVersion = app.ResourceVersion
	require.NoError(t, admin.Update(t.Context(), file))
	assert.Equal(t, "berlin", file.Spec.ClusterName)
}

// W10, W51: what is allowed and hardly meant.
func TestKubernetesApplication_warns(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	app := newKubernetesApplication(c.Namespace(t))
	app.Spec.ResourceTemplates[0].Metadata.Namespace = "elsewhere"
	app.Spec.ResourceTemplates = append(app.Spec.ResourceTemplates, newResourceTemplate("again", newObject("v1", "ConfigMap", "web")))
	require.NoError(t, admin.Create(t.Context(), app))
	assert.Len(t, warned.take(), 2)
}

// C35: who may write applications and not use clusters changes neither templates nor cluster;
// who only moves it along with the scheduler's right need not read its Secrets.
func TestKubernetesApplication_schedulingNeedsUseAlone(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	app := newKubernetesApplication(c.Namespace(t))
	app.Spec.ResourceTemplates[0].Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "sql"}}
	require.NoError(t, admin.Create(t.Context(), app))
	app.Spec.ClusterName = "berlin"
	require.True(t, apierrors.IsForbidden(c.with(t, app.Namespace, nil).Update(t.Context(), app)))
	use := []permission{in(v1alpha1.Group, "kubernetesclusters", "use")}
	require.NoError(t, c.with(t, app.Namespace, use).Update(t.Context(), app))
}

// C13, C35: to take over an object of others is to act in the cluster.
func TestKubernetesApplicationResource_adoptionNeedsUse(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	resource := newKubernetesApplicationResource(c.Namespace(t), newObject("v1", "ConfigMap", "web"))
	require.NoError(t, admin.Create(t.Context(), resource))
	resource.Annotations = map[string]string{"note": "mine"}
	user := c.with(t, resource.Namespace, nil)
	require.NoError(t, user.Update(t.Context(), resource))
	resource.Annotations[v1alpha1.AdoptAnnotation] = "true"
	require.True(t, apierrors.IsForbidden(user.Update(t.Context(), resource)))
}
