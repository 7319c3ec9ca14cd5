package application_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/controllers/application"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// agent is who the agent of the test is in its cluster: its rights are those of the chart, and
// what the test grants.
func (w *world) agent() string { return w.Namespace }

// agentCluster is one on which each test runs an agent of its own.
func agentCluster(t *testing.T) *env.Cluster {
	return env.Shared(t, env.Options{Name: "agent", Audit: true, CRDs: []string{crds}})
}

// newAgentWorld returns a world on the cluster of agents, where one runs, which has these
// rights on components.
func newAgentWorld(t *testing.T, rights ...rbacv1.PolicyRule) *world {
	t.Helper()
	w, _ := newStoppableAgentWorld(t, rights...)
	return w
}

// newStoppableAgentWorld is newAgentWorld for a test that stops the agent.
func newStoppableAgentWorld(t *testing.T, rights ...rbacv1.PolicyRule) (w *world, stop func()) {
	t.Helper()
	w = &world{hub.NewWorld(t, agentCluster(t))}
	w.grant("waybill-agent", agentRights(t)...)
	w.grant("waybill-agent-components", rights...)
	return w, w.startAgent()
}

// agentRights are those that the chart gives every agent.
func agentRights(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	content, err := os.ReadFile("../../../charts/waybill/files/rbac/agent.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(content, role))
	return role.Rules
}

// grant has the agent have just these rights by a ClusterRole of that name.
func (w *world) grant(name string, rules ...rbacv1.PolicyRule) {
	w.T.Helper()
	ctx := w.T.Context()
	meta := metav1.ObjectMeta{Name: w.Namespace + "-" + name}
	role := &rbacv1.ClusterRole{ObjectMeta: meta}
	_, err := ctrl.CreateOrUpdate(ctx, w.Client, role, func() error { role.Rules = rules; return nil })
	require.NoError(w.T, err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.agent()}},
	}
	require.NoError(w.T, client.IgnoreAlreadyExists(w.Client.Create(ctx, binding)))
	w.T.Cleanup(func() {
		_ = w.Client.Delete(context.Background(), binding)
		_ = w.Client.Delete(context.Background(), role)
	})
	w.Cluster.AwaitGranted(w.T, w.agent(), "", rules...)
}

// right is what the chart gives on a kind of components.
func right(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch", "patch"}}
}

// startAgent runs an agent until the end of the test, or until the function is called that it
// returns. Its requests go through wraps.
func (w *world) startAgent(wraps ...transport.WrapperFunc) (stop func()) {
	t := w.T
	t.Helper()
	user, err := w.Cluster.AddUser(w.agent())
	require.NoError(t, err)
	for _, wrap := range wraps {
		user.Wrap(wrap)
	}
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := ctrl.NewManager(user, ctrl.Options{
		Scheme:     hub.NewScheme(t),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultTransform: cluster.Trim},
	})
	require.NoError(t, err)
	local, err := cluster.NewLocal(ctx, mgr.GetConfig(), mgr.GetCache(), mgr.GetScheme())
	require.NoError(t, err)
	r := &application.Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("application"), Cluster: local}
	require.NoError(t, r.SetupWithManager(ctx, mgr))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); err != nil {
			log.Log.Error(err, "agent ended")
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}
