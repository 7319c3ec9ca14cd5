package cluster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/test/env"
)

func isUnreachable(err error) bool { return errors.Is(err, cluster.ErrUnreachable) }

// C38, C45
func TestRegistry_engagesAtFirstContact(t *testing.T) {
	r := newRegistry(t, fast())
	var mu sync.Mutex
	var calls []string
	record := func(call string) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, call)
	}
	done := make(chan struct{})
	r.OnEngage(func(_ context.Context, c *cluster.Cluster) error {
		record("first " + c.Name().String())
		return nil
	})
	r.OnEngage(func(ctx context.Context, c *cluster.Cluster) error {
		record("second " + c.Name().String())
		assert.NoError(t, ctx.Err())
		close(done)
		return nil
	})
	_, err := r.Get(one)
	require.ErrorIs(t, err, cluster.ErrNotEngaged)

	r.Ensure(one, "a", user(t).RESTConfig())
	c := engaged(t, r, one)
	env.Receive(t, done, "a hook was not called")
	mu.Lock()
	assert.Equal(t, []string{"first team-a/one", "second team-a/one"}, calls)
	mu.Unlock()

	state, ok := r.State(one)
	require.True(t, ok)
	assert.Regexp(t, `^v1\.\d+`, state.Version)
	assert.Equal(t, c.UID(), state.UID)
	assert.NotEmpty(t, state.UID)
	assert.NotEqual(t, r.Local().UID(), state.UID, "two clusters")
	assert.True(t, state.Engaged && state.Reachable)
	assert.NoError(t, state.Err)
	assert.False(t, state.LastSeen.IsZero())

	r.Ensure(one, "a", user(t).RESTConfig())
	again, err := r.Get(one)
	require.NoError(t, err)
	assert.Same(t, c, again, "the same kubeconfig changes nothing")

	r.Remove(one)
	env.Receive(t, c.Context().Done(), "the cluster is still engaged")
	_, err = r.Get(one)
	assert.ErrorIs(t, err, cluster.ErrNotEngaged)
}

// C38: a KubernetesCluster without a kubeconfig is the cluster it lives in.
func TestRegistry_engagesTheLocalCluster(t *testing.T) {
	r := newRegistry(t, fast())
	hooked := make(chan types.NamespacedName, 1)
	r.OnEngage(func(_ context.Context, c *cluster.Cluster) error {
		hooked <- c.Name()
		return nil
	})
	r.Ensure(one, "local", nil)
	c := engaged(t, r, one)
	assert.Equal(t, one, env.Receive(t, hooked, "the hook was not called"))
	assert.Equal(t, one, c.Name())
	assert.Equal(t, r.Local().UID(), c.UID())
	assert.Empty(t, r.Local().Name())
	state, _ := r.State(one)
	assert.Regexp(t, `^v1\.\d+`, state.Version)
	assert.Same(t, r.Local().Cache(), c.Cache(), "nothing is cached twice")
}

func TestRegistry_retriesAHookThatFails(t *testing.T) {
	r := newRegistry(t, fast())
	var tries int
	second, healed := make(chan struct{}), make(chan struct{})
	r.OnEngage(func(context.Context, *cluster.Cluster) error {
		if tries++; tries == 1 {
			return errors.New("not yet")
		}
		close(healed)
		return nil
	})
	r.OnEngage(func(context.Context, *cluster.Cluster) error {
		close(second)
		return nil
	})
	r.Ensure(one, "a", user(t).RESTConfig())
	env.Receive(t, second, "the hook after the one that fails was not called")
	env.Receive(t, healed, "the hook was not called again")
}

// What comes too late could disturb the next engagement of the cluster.
func TestRegistry_callsNoHookOfAnEngagementThatHasEnded(t *testing.T) {
	r := newRegistry(t, fast())
	first := make(chan struct{})
	r.OnEngage(func(ctx context.Context, _ *cluster.Cluster) error {
		close(first)
		<-ctx.Done()
		return nil
	})
	r.OnEngage(func(context.Context, *cluster.Cluster) error {
		t.Error("the hook after the one that took too long was called")
		return nil
	})
	r.Ensure(one, "a", user(t).RESTConfig())
	env.Receive(t, first, "the hook was not called")
	r.Remove(one)
	r.Close() // waits for the hooks
}

// C45: two names of one cluster are not both driven, and both can be used.
func TestRegistry_guardHasAClusterNotBeDriven(t *testing.T) {
	r := newRegistry(t, fast())
	var mu sync.Mutex
	yields := errors.New("the same cluster as team-a/zero")
	asked := ""
	r.Guard(func(_ types.NamespacedName, uid string) error {
		mu.Lock()
		defer mu.Unlock()
		asked = uid
		return yields
	})
	set := func(err error) {
		mu.Lock()
		yields = err
		mu.Unlock()
		r.Probe(one)
	}
	driven := make(chan *cluster.Cluster, 1)
	r.OnEngage(func(_ context.Context, c *cluster.Cluster) error {
		driven <- c
		return nil
	})
	r.Ensure(one, "a", user(t).RESTConfig())
	c := engaged(t, r, one)
	require.NoError(t, c.Client().List(t.Context(), &corev1.NamespaceList{}))
	state, _ := r.State(one)
	require.EqualError(t, state.Yields, "the same cluster as team-a/zero")
	require.NoError(t, state.Err)
	mu.Lock()
	assert.Equal(t, state.UID, asked)
	mu.Unlock()
	assert.Empty(t, driven)

	set(nil)
	assert.Same(t, c, env.Receive(t, driven, "it is not driven"), "it goes on as it is")
	set(errors.New("again"))
	env.Receive(t, c.Context().Done(), "the cluster is still engaged")
	assert.NotSame(t, c, engaged(t, r, one))
	assert.Empty(t, driven)
}

// C38: rotated credentials are picked up live.
func TestRegistry_rotatedCredentials(t *testing.T) {
	r := newRegistry(t, fast())
	before, err := user(t).AddUser("before", "system:masters")
	require.NoError(t, err)
	after, err := user(t).AddUser("after", "system:masters")
	require.NoError(t, err)
	hooked := make(chan *cluster.Cluster, 2)
	r.OnEngage(func(_ context.Context, c *cluster.Cluster) error {
		hooked <- c
		return nil
	})
	r.Ensure(one, "before", before)
	old := env.Receive(t, hooked, "the hook was not called")
	r.Ensure(one, "after", after)
	env.Receive(t, old.Context().Done(), "the cluster is still engaged as before")
	fresh := env.Receive(t, hooked, "the hook was not called again")
	require.NotSame(t, old, fresh)
	assert.NoError(t, fresh.Context().Err())

	list := &corev1.NamespaceList{}
	require.NoError(t, fresh.Client().List(t.Context(), list))
	require.Eventually(t, func() bool {
		return errors.Is(old.Client().List(t.Context(), list), cluster.ErrNotEngaged)
	}, limit, often, "the old credentials are not used any more")
}

// The users of a cluster are notified when its credentials are taken away, or replaced by what cannot be
// used.
func TestRegistry_tellsWhenCredentialsAreRevoked(t *testing.T) {
	useless := user(t).RESTConfig()
	useless.CAData = []byte("nonsense")
	for name, revoke := range map[string]func(*cluster.Registry){
		"Removed":  func(r *cluster.Registry) { r.Remove(one) },
		"Replaced": func(r *cluster.Registry) { r.Ensure(one, "b", useless) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, fast())
			told := make(chan error, 100)
			r.Subscribe(func(key types.NamespacedName, reachable bool) {
				_, err := r.Get(key)
				if !reachable {
					told <- err
				}
			})
			r.Ensure(one, "a", user(t).RESTConfig())
			c := engaged(t, r, one)
			for len(told) > 0 {
				<-told //nolint:errcheck // the first contact may have taken several tries
			}

			revoke(r)
			require.ErrorIs(t, env.Receive(t, told, "no user is notified"), cluster.ErrNotEngaged)
			env.Receive(t, c.Context().Done(), "the cluster is still engaged")
			revoke(r)
			assert.Empty(t, told, "it is no news")
		})
	}
}

// Wrong credentials: the server answers, so it is not called unreachable.
func TestRegistry_refusedCredentials(t *testing.T) {
	cases := map[string]struct {
		reason string
		user   string
		token  string
		want   string
	}{
		"Unauthorized": {
			reason: "an expired token is refused by everything",
			token:  "nonsense",
			want:   "cluster team-a/one is not connected: the API server refuses the credentials of the kubeconfig (401): renew them",
		},
		"Forbidden": {
			reason: "without the UID of the cluster it cannot be told from another",
			user:   "nobody",
			want:   "cluster team-a/one is not connected: the user of the kubeconfig may not get /api/v1/namespaces/kube-system (403): grant it",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := user(t).RESTConfig()
			if tc.user != "" {
				added, err := user(t).AddUser(tc.user)
				require.NoError(t, err)
				config = added
			} else {
				config.CertData, config.KeyData, config.BearerToken = nil, nil, tc.token
			}
			r := newRegistry(t, fast())
			r.Ensure(one, "a", config)
			require.Eventually(t, func() bool {
				state, _ := r.State(one)
				return state.Contacted
			}, limit, often)
			state, _ := r.State(one)
			assert.True(t, state.Reachable, tc.reason)
			_, err := r.Get(one)
			require.ErrorIs(t, err, cluster.ErrNotEngaged, tc.reason)
			assert.EqualError(t, err, tc.want)
		})
	}
}

// C38: where the operator allows it, a program provides the credentials.
func TestRegistry_execCredentials(t *testing.T) {
	admin := user(t).RESTConfig()
	credential := filepath.Join(t.TempDir(), "credential.json")
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"user": {Server: admin.Host, CertificateAuthorityData: admin.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"user": {Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "cat", Args: []string{credential},
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}},
		Contexts:       map[string]*clientcmdapi.Context{"user": {Cluster: "user", AuthInfo: "user"}},
		CurrentContext: "user",
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(credential, execCredential(t, admin.CertData, admin.KeyData), 0o600))
	config, err := cluster.ParseKubeconfig(content, cluster.KubeconfigOptions{AllowExec: true})
	require.NoError(t, err)

	r := newRegistry(t, fast())
	r.Ensure(one, "a", config)
	c := engaged(t, r, one)
	require.NoError(t, c.Client().List(t.Context(), &corev1.NamespaceList{}))
}

// The kubeconfig of a cluster works as it is written.
func TestRegistry_kubeconfigOfACluster(t *testing.T) {
	config, err := cluster.ParseKubeconfig(user(t).Kubeconfig(), cluster.KubeconfigOptions{})
	require.NoError(t, err)
	r := newRegistry(t, fast())
	r.Ensure(one, "a", config)
	c := engaged(t, r, one)
	ns := &corev1.Namespace{}
	require.NoError(t, c.Client().Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, ns))
	assert.Equal(t, c.UID(), string(ns.UID))
}
