package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// C38: the account that --agent makes may install, upgrade, correct and remove Waybill's own share, also where that grants
// what the account itself may not, and grant nothing else.
func TestCluster_agentGetsJustWhatItNeeds(t *testing.T) {
	startDriver(t)
	there := clientOf(t, user(t))
	got := cluster(t, "add", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--label", broughtIn+"=true", "--agent")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	assert.Contains(t, got.out, "berlin: the token of the hub may read all Secrets, act as every ServiceAccount and write the roles of Waybill's own share, and does not expire")
	assert.Contains(t, got.out, "agent installed ")

	weak := withToken(t, kept(t, "berlin").Data["value"])
	everything := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	for reason, o := range map[string]client.Object{
		"a role of another name": named(&rbacv1.ClusterRole{Rules: everything}, "", "another"),
		"a role of others": named(&rbacv1.ClusterRoleBinding{
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "anna"}},
		}, "", "another"),
		"another namespace": named(&rbacv1.Role{}, "default", "waybill-webhook"),
	} {
		err := weak.Create(t.Context(), o, client.DryRunAll)
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", reason, err)
	}

	setAgent(t, map[string]any{"roles": map[string]any{"data": true}, "sync": map[string]any{"perRole": true}, "webhook": map[string]any{"podDryRun": true}})
	data := named(&appsv1.Deployment{}, system, "waybill-data")
	require.Eventually(t, func() bool {
		return agentIs(t, true) && there.Get(t.Context(), client.ObjectKeyFromObject(data), data) == nil
	}, limit, often, "it is upgraded")
	kinds := named(&rbacv1.ClusterRole{}, "", "waybill-data-kinds")
	require.NoError(t, there.Get(t.Context(), client.ObjectKeyFromObject(kinds), kinds))
	assert.NotNil(t, kinds.AggregationRule)

	require.NoError(t, there.Delete(t.Context(), kinds))
	require.Eventually(t, func() bool {
		return there.Get(t.Context(), client.ObjectKeyFromObject(kinds), kinds) == nil
	}, limit, often, "what others delete is put back")

	changeBerlin(t, func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Agent = nil })
	require.Eventually(t, func() bool { return berlin(t).Status.Agent == nil }, limit, often, "it is removed")
	absent(t, there, data, kinds, named(&rbacv1.Role{}, system, "waybill-webhook"))

	got = cluster(t, "remove", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--yes")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	const name = "waybill-hub-access-agent"
	absent(t, there, append(accountOfTheHub(), named(&rbacv1.ClusterRole{}, "", name), named(&rbacv1.ClusterRoleBinding{}, "", name),
		named(&rbacv1.Role{}, system, name), named(&rbacv1.RoleBinding{}, system, name))...)
}

// Without --agent, the message says what grants the rights that the agent's chart takes.
func TestCluster_agentSaysHowToGetItsRights(t *testing.T) {
	startDriver(t)
	got := cluster(t, "add", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--label", broughtIn+"=true")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	setAgent(t, nil)
	require.Eventually(t, func() bool { return agentIs(t, false) }, limit, often)
	assert.Contains(t, agentCondition(t), "`waybill cluster add` with --agent")

	got = cluster(t, "add", "berlin", "--kubeconfig", user(t).KubeconfigFile())
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	assert.Contains(t, got.out, "ClusterRole/waybill-hub-access-agent created", "the KubernetesCluster asks for it")
	got = cluster(t, "remove", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--yes")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
}

// berlin is the KubernetesCluster of that name.
func berlin(t *testing.T) *v1alpha1.KubernetesCluster {
	t.Helper()
	kc := &v1alpha1.KubernetesCluster{}
	require.NoError(t, clientOf(t, hub(t)).Get(t.Context(), client.ObjectKey{Namespace: system, Name: "berlin"}, kc))
	return kc
}

// setAgent sets spec.agent, with values.
func setAgent(t *testing.T, values map[string]any) {
	t.Helper()
	raw, err := json.Marshal(values)
	require.NoError(t, err)
	changeBerlin(t, func(kc *v1alpha1.KubernetesCluster) {
		kc.Spec.Agent = &v1alpha1.ClusterAgent{}
		if values != nil {
			kc.Spec.Agent.Values = &apiextensionsv1.JSON{Raw: raw}
		}
	})
}

// changeBerlin edits the KubernetesCluster, whose status changes all the time.
func changeBerlin(t *testing.T, edit func(*v1alpha1.KubernetesCluster)) {
	t.Helper()
	kc := berlin(t)
	before := kc.DeepCopy()
	edit(kc)
	require.NoError(t, clientOf(t, hub(t)).Patch(t.Context(), kc, client.MergeFrom(before)))
}

// agentIs reports whether it is known whether the agent is ready, and which of both.
func agentIs(t *testing.T, ready bool) bool {
	t.Helper()
	conditions := berlin(t).Status.Conditions
	if ready {
		return meta.IsStatusConditionTrue(conditions, v1alpha1.AgentReadyCondition)
	}
	return meta.IsStatusConditionFalse(conditions, v1alpha1.AgentReadyCondition)
}

// agentCondition is what the condition says of the agent.
func agentCondition(t *testing.T) string {
	t.Helper()
	if c := meta.FindStatusCondition(berlin(t).Status.Conditions, v1alpha1.AgentReadyCondition); c != nil {
		return c.Message
	}
	return ""
}
