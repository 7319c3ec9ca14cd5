package integration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"waybill.dev/waybill/api/v1alpha1"
)

// C44: with a process per role, each has its own account and its own ClusterRole.
func TestChart_rolesShareNoRights(t *testing.T) {
	objects, err := renderWaybill(t, map[string]any{"sync": map[string]any{"perRole": true, "clusterAdmin": false}})
	require.NoError(t, err)
	assert.Equal(t, []string{"waybill-agent", "waybill-driver", "waybill-hub", "waybill-webhook"}, names(objects, "ServiceAccount"))
	for _, o := range objects {
		if o.GetKind() != "ClusterRoleBinding" || o.GetName() == "waybill-catalog" {
			continue
		}
		subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
		require.Len(t, subjects, 1, o.GetName())
		role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		assert.NotEqual(t, "cluster-admin", role)
		assert.Contains(t, role, subjects[0].(map[string]any)["name"], o.GetName())
	}
}

// C44: of the processes of a Deployment one leads, by a Lease that no other Deployment takes, and
// that none but its own account may change.
func TestChart_eachDeploymentHasItsLeader(t *testing.T) {
	for _, perRole := range []bool{false, true} {
		objects, err := renderWaybill(t, map[string]any{"sync": map[string]any{"perRole": perRole, "replicas": 2}})
		require.NoError(t, err)
		for _, name := range names(objects, "Deployment") {
			if name == "waybill-webhook" {
				continue
			}
			deployment := find(t, objects, "Deployment", name)
			assert.Subset(t, container(t, deployment)["args"], []any{"--leader-elect", "--leader-election-id=" + name})
			replicas, _, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
			assert.EqualValues(t, 2, replicas, name)
			role := find(t, objects, "Role", name+"-leader-election")
			rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
			assert.Contains(t, rules, map[string]any{
				"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"}, "resourceNames": []any{name},
				"verbs": []any{"get", "update", "patch"},
			})
			assert.Contains(t, rules, map[string]any{
				"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{v1alpha1.HealthRulesConfigMap}, "verbs": []any{"get", "list", "watch"},
			}, "rules of health that an operator adds")
			binding := find(t, objects, "RoleBinding", name+"-leader-election")
			subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
			require.Len(t, subjects, 1, name)
			assert.Equal(t, name, subjects[0].(map[string]any)["name"])
		}
	}
}

// C44: the agent may do with components what its values say, and no more.
func TestChart_agentRights(t *testing.T) {
	for name, tc := range map[string]struct {
		agent map[string]any
		verbs []any
	}{
		"by default":                 {map[string]any{}, []any{"get", "list", "watch", "patch"}},
		"where owning takes a right": {map[string]any{"mayDelete": true}, []any{"get", "list", "watch", "patch", "delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := renderWaybill(t, map[string]any{"agent": tc.agent})
			require.NoError(t, err)
			rules, _, _ := unstructured.NestedSlice(find(t, objects, "ClusterRole", "waybill-agent-components").Object, "rules")
			require.NotEmpty(t, rules)
			for _, rule := range rules {
				assert.Equal(t, tc.verbs, rule.(map[string]any)["verbs"])
			}
		})
	}
}

// What gives much in Waybill's name is given to administrators of namespaces by a value alone (C35).
func TestChart_adminRights(t *testing.T) {
	const aggregate = "rbac.authorization.k8s.io/aggregate-to-admin"
	for value, role := range map[string]string{"installForAdmins": "waybill-installer", "clustersForAdmins": "waybill-cluster-admin"} {
		objects, err := renderWaybill(t, nil)
		require.NoError(t, err)
		assert.NotContains(t, find(t, objects, "ClusterRole", role).GetLabels(), aggregate, role)
		objects, err = renderWaybill(t, map[string]any{"userRoles": map[string]any{value: true}})
		require.NoError(t, err)
		assert.Contains(t, find(t, objects, "ClusterRole", role).GetLabels(), aggregate, role)
	}
}

// assertPeopleMay: the user roles reach people through the ClusterRoles that they have anyway (C35).
func assertPeopleMay(t *testing.T, clientset kubernetes.Interface) {
	t.Helper()
	type right struct{ role, verb, group, resource string }
	may := func(r right) bool {
		got, err := clientset.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: r.role, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: metav1.NamespaceDefault, Verb: r.verb, Group: r.group, Resource: r.resource, Name: "x",
			}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		return got.Status.Allowed
	}
	for _, r := range []right{
		{"view", "get", v1alpha1.Group, "gitsyncs"},
		{"edit", "create", v1alpha1.Group, "applicationinstallations"},
		{"admin", "install-into", "", "namespaces"},
		{"edit", "create", v1alpha1.Group, "applicationrollbacks"},
		{"edit", "restore", v1alpha1.Group, "applicationsnapshots"},
		{"waybill-data-admin", "create", v1alpha1.Group, "applicationsnapshotclasses"},
		{"waybill-data-admin", "use", v1alpha1.Group, "applicationsnapshotcontents"},
		{"waybill-cluster-admin", "create", v1alpha1.Group, "kubernetesclusters"},
		{"waybill-cluster-admin", "use", v1alpha1.Group, "kubernetesclusters"},
		{"waybill-installer", "install", v1alpha1.Group, "applicationdefinitions"},
	} {
		bindRole(t, clientset, r.role)
		// Roles are aggregated by a controller, and authorizers learn of it a moment later.
		require.Eventually(t, func() bool { return may(r) }, limit, often, "%+v", r)
	}
	// All roles have been aggregated, so that what is refused now stays refused.
	for _, r := range []right{
		{"view", "create", v1alpha1.Group, "applications"},
		{"view", "restore", v1alpha1.Group, "applicationsnapshots"},
		{"edit", "use", v1alpha1.Group, "kubernetesclusters"},
		{"edit", "update", v1alpha1.Group, "applicationrollbacks/status"},
		{"admin", "use", v1alpha1.Group, "applicationsnapshotcontents"},
		{"admin", "create", v1alpha1.Group, "applicationsnapshotcontents"},
		{"admin", "create", v1alpha1.Group, "applicationsnapshotclasses"},
		{"admin", "install", v1alpha1.Group, "applicationdefinitions"},
		{"admin", "create", v1alpha1.Group, "kubernetesclusters"},
		{"admin", "use", v1alpha1.Group, "kubernetesclusters"},
	} {
		assert.False(t, may(r), "%+v", r)
	}
}

// bindRole gives the ClusterRole to a user of the same name, in namespace default.
func bindRole(t *testing.T, clientset kubernetes.Interface, role string) {
	t.Helper()
	_, err := clientset.RbacV1().RoleBindings(metav1.NamespaceDefault).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role}},
	}, metav1.CreateOptions{})
	if err != nil {
		require.True(t, apierrors.IsAlreadyExists(err), err)
	}
}
