package applicationdefinition_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// grantReading lets a user engage a cluster and read definitions, no more.
func grantReading(t *testing.T, c client.Client, user string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
			{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := c.Create(t.Context(), o); !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), o) })
	}
}

// C59: "offered" is to every cluster until there is a clusterSelector. What is no longer
// offered is taken away, whichever of the two changed.
func TestCopies_clusterSelector(t *testing.T) {
	s := newSuite(t)
	s.engage("eu-1", shared(t, "user").RESTConfig(), map[string]string{"env": "prod"})
	s.engage("eu-2", shared(t, "other").RESTConfig(), map[string]string{"env": "test"})
	prod, test := s.user("user"), s.user("other")
	s.define("web", func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	})
	d := until(t, s, "web", isReady)
	assert.EqualValues(t, 1, d.Status.Clusters)
	until(t, prod, "web", present)
	assert.Nil(t, get(t, test, "web"))

	change(t, s, "web", func(d *v1alpha1.ApplicationDefinition) { d.Spec.ClusterSelector.MatchLabels["env"] = "test" })
	until(t, prod, "web", absent)
	until(t, test, "web", present)

	kc := &v1alpha1.KubernetesCluster{}
	require.NoError(t, s.Get(t.Context(), s.key("eu-2"), kc))
	kc.Labels["env"] = "stage"
	require.NoError(t, s.Update(t.Context(), kc))
	until(t, test, "web", absent)
	until(t, s, "web", func(d *v1alpha1.ApplicationDefinition) bool { return d.Status.Clusters == 0 })

	change(t, s, "web", func(d *v1alpha1.ApplicationDefinition) { d.Spec.ClusterSelector = nil })
	until(t, prod, "web", present)
	until(t, test, "web", present)
}

// A cluster that hangs costs the others nothing, and gets its copies when it is back.
func TestCopies_deadCluster(t *testing.T) {
	s := newSuite(t)
	gate, config := s.gated("other")
	s.engage("eu-1", shared(t, "user").RESTConfig(), nil)
	s.engage("eu-2", config, nil)
	s.define("before")
	until(t, s, "before", isReady)

	require.NoError(t, gate.Hang())
	s.define("after")
	until(t, s.user("user"), "after", present)
	state, _ := s.registry.State(s.key("eu-2"))
	assert.True(t, state.Reachable, "that the other one hangs is not known yet")
	gate.Shut()
	d := until(t, s, "after", isReady)
	assert.EqualValues(t, 1, d.Status.Clusters)
	assert.Equal(t, "every reachable cluster has a copy; the others get one when they are reachable again: "+s.key("eu-2").String(),
		condition(d, v1alpha1.ReadyCondition).Message)
	assert.EqualValues(t, 2, until(t, s, "before", present).Status.Clusters, "what it has it still has")

	require.NoError(t, gate.Open())
	until(t, s.user("other"), "after", present)
	until(t, s, "after", func(d *v1alpha1.ApplicationDefinition) bool {
		return d.Status.Clusters == 2 && condition(d, v1alpha1.ReadyCondition).Message == "every cluster that it is offered to has a copy"
	})
}

// What was removed, and changed, while a cluster was away is so when it is back.
func TestCopies_whileAway(t *testing.T) {
	s := newSuite(t)
	gate, config := s.gated("other")
	s.engage("eu-2", config, nil)
	for _, name := range []string{"removed", "changed"} {
		s.define(name)
		until(t, s, name, isReady)
	}
	gate.Shut()
	require.NoError(t, s.Delete(t.Context(), newDefinition("removed")))
	until(t, s, "removed", absent)
	change(t, s, "changed", func(d *v1alpha1.ApplicationDefinition) { d.Spec.Description = "new" })
	until(t, s, "changed", func(d *v1alpha1.ApplicationDefinition) bool { return isReady(d) && d.Status.Clusters == 0 })
	require.NoError(t, gate.Open())
	other := s.user("other")
	until(t, other, "removed", absent)
	until(t, other, "changed", func(d *v1alpha1.ApplicationDefinition) bool { return d.Spec.Description == "new" })
}

// A cluster that is being removed, or is paused, is left alone.
func TestCopies_clusterThatGoes(t *testing.T) {
	s := newSuite(t)
	kc := s.engage("eu-1", shared(t, "user").RESTConfig(), nil)
	held := kc.DeepCopy()
	held.Finalizers = []string{v1alpha1.Finalizer}
	require.NoError(t, s.Patch(t.Context(), held, client.MergeFrom(kc)))
	s.define("web")
	until(t, s, "web", isReady)
	require.NoError(t, s.Delete(t.Context(), kc))
	until(t, s, "web", func(d *v1alpha1.ApplicationDefinition) bool { return d.Status.Clusters == 0 })
	user := s.user("user")
	require.NoError(t, user.Delete(t.Context(), newDefinition("web")))
	change(t, s, "web", func(d *v1alpha1.ApplicationDefinition) { d.Spec.Description = "new" })
	until(t, s, "web", isReady)
	assert.Nil(t, get(t, user, "web"), "the controller of KubernetesClusters deletes the copies")
	released := held.DeepCopy()
	released.Finalizers = nil
	require.NoError(t, s.Patch(t.Context(), released, client.MergeFrom(held)))
}
