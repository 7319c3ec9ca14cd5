package main

import (
	"context"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

const (
	limit = env.Limit
	often = 20 * time.Millisecond
)

func TestCachesSynced(t *testing.T) {
	cluster := env.Start(t, env.Options{Name: "ready", NoControllers: true})
	clientset, err := kubernetes.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	config, err := cluster.AddUser("reader")
	require.NoError(t, err)
	caches, err := cache.New(config, cache.Options{})
	require.NoError(t, err)
	_, err = caches.GetInformer(t.Context(), &corev1.Namespace{}, cache.BlockUntilSynced(false))
	require.NoError(t, err)
	ready := func() error { return cachesSynced(caches)(httptest.NewRequest("GET", "/readyz", nil)) }
	require.EqualError(t, ready(), "caches are not filled yet", "nothing has been started")

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- caches.Start(ctx) }()
	require.EqualError(t, ready(), "caches are not filled yet", "the user may not list")
	_, err = clientset.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return ready() == nil }, limit, often)
	cancel()
	require.NoError(t, <-ended)
}

// C44: of two processes one leads; the other is ready, too, so that an update goes on.
func TestProgram_isReadyWhereAnotherLeads(t *testing.T) {
	bin, err := program.Build(t.Context(), program.Sync)
	require.NoError(t, err)
	require.NoError(t, exec.CommandContext(t.Context(), filepath.Join(bin, program.Sync), "--help").Run(), "help is no failure")

	cluster := env.Start(t, env.Options{Name: "leaders", NoControllers: true, CRDs: []string{"../../charts/waybill/crds"}})
	clientset, err := kubernetes.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	_, err = clientset.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: defaultSystemNamespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	start := func(name string) *env.Process {
		process, err := program.Start(t.Context(), program.Options{
			Name: program.Sync, As: name, Bin: bin, Kubeconfig: cluster.KubeconfigFile(),
			Args: []string{"--controllers=agent", "--leader-elect", "--leader-election-id=waybill-agent"},
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = process.Kill() })
		return process
	}
	holder := func() string {
		lease, err := clientset.CoordinationV1().Leases(defaultSystemNamespace).Get(t.Context(), "waybill-agent", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	first := start("first")
	require.Eventually(t, func() bool { return holder() != "" }, limit, often)
	leader := holder()
	start("second") // returns once it is ready
	assert.Equal(t, leader, holder())
	require.NoError(t, first.Stop(t.Context()))
	require.Eventually(t, func() bool { return holder() != "" && holder() != leader }, limit, often, "no other replica takes over")
}
