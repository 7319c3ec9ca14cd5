package cluster_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/test/env"
)

// front is what stands before the API server of the user cluster. It passes on who asks, and keeps
// with which tokens nodes were asked for: only a test does.
type front struct {
	config *rest.Config // without credentials

	mu      sync.Mutex
	came    []string
	answers answers
}

// answers reports whether it has answered a request itself.
type answers func(w http.ResponseWriter, token, path string) bool

func newFront(t *testing.T) *front {
	f := &front{}
	f.config = before(t, rest.AnonymousClientConfig(user(t).RESTConfig()), func(_ *httptest.Server, w http.ResponseWriter, r *http.Request) bool {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		f.mu.Lock()
		if r.URL.Path == "/api/v1/nodes" {
			f.came = append(f.came, token)
		}
		answers := f.answers
		f.mu.Unlock()
		return answers != nil && answers(w, token, r.URL.Path)
	})
	return f
}

// answer has requests be answered without the API server.
func (f *front) answer(by answers) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = by
}

// refuse has the front refuse a token.
func (f *front) refuse(token string) {
	f.answer(func(w http.ResponseWriter, came, _ string) bool {
		if came == token {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return came == token
	})
}

// tokens returns those that came with requests since it was last called.
func (f *front) tokens() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	came := f.came
	f.came = nil
	return came
}

// with is the configuration with a token.
func (f *front) with(token string) *rest.Config {
	config := rest.CopyConfig(f.config)
	config.BearerToken = token
	return config
}

// account creates a ServiceAccount that may do everything, and returns what issues tokens for it.
func account(t *testing.T, namespace, name string) (token func() string) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(user(t).RESTConfig())
	require.NoError(t, err)
	accounts := clientset.CoreV1().ServiceAccounts(namespace)
	_, err = accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = clientset.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	all := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	user(t).AwaitGranted(t, "system:serviceaccount:"+namespace+":"+name, "", all)
	return func() string {
		issued, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		require.NoError(t, err)
		return issued.Status.Token
	}
}

// driving returns a registry, and the engagements that it drives.
func driving(t *testing.T) (*cluster.Registry, <-chan *cluster.Cluster) {
	r := newRegistry(t, fast())
	driven := make(chan *cluster.Cluster, 10)
	r.OnEngage(func(_ context.Context, c *cluster.Cluster) error {
		driven <- c
		return nil
	})
	return r, driven
}

// begun waits until a cluster is driven, and known to be: credentials that come before are those of another
// engagement.
func begun(t *testing.T, r *cluster.Registry, driven <-chan *cluster.Cluster) *cluster.Cluster {
	t.Helper()
	c := env.Receive(t, driven, "the cluster is not driven")
	require.Same(t, c, engaged(t, r, one))
	return c
}

// C38: rotated credentials are picked up live. Those of one user end nothing that is under way.
func TestRegistry_goesOnWithARenewedToken(t *testing.T) {
	ns := user(t).Namespace(t)
	token := account(t, ns, "hub")
	earlier, later := token(), token()
	require.NotEqual(t, earlier, later)
	f := newFront(t)
	r, driven := driving(t)
	r.Ensure(one, "earlier", f.with(earlier))
	c := begun(t, r, driven)

	watched, err := c.Metadata().Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(watched.Stop)
	seen := watchDefinitions(t, c)
	view, err := c.As("system:serviceaccount:" + ns + ":hub")
	require.NoError(t, err)
	impersonating := rest.CopyConfig(c.Config())
	impersonating.Impersonate.UserName = "system:serviceaccount:" + ns + ":hub"
	uses := []func() error{
		func() error { return c.Client().List(t.Context(), &corev1.NodeList{}) },
		func() error { return view.Client().List(t.Context(), &corev1.NodeList{}) },
		func() error { return nodes(t, c.Config()) },
		func() error { return nodes(t, impersonating) },
	}
	for _, use := range uses {
		require.NoError(t, use())
	}
	assert.Equal(t, []string{earlier, earlier, earlier, earlier}, f.tokens())
	assert.Empty(t, c.Config().BearerToken, "what is to be forgotten is not copied")

	r.Ensure(one, "later", f.with(later))
	require.Eventually(t, func() bool {
		require.NoError(t, uses[0]())
		return slices.Contains(f.tokens(), later)
	}, limit, often, "the new token is not used")
	f.refuse(earlier)
	for _, use := range uses {
		require.NoError(t, use(), "the old token may be revoked")
	}
	assert.Equal(t, []string{later, later, later, later}, f.tokens())

	same, err := r.Get(one)
	require.NoError(t, err)
	assert.Same(t, c, same)
	require.NoError(t, c.Context().Err())
	assert.Empty(t, driven, "nothing is engaged anew")
	created := user(t).Namespace(t)
	for event := range watched.ResultChan() {
		require.NotEqual(t, apiwatch.Error, event.Type)
		if event.Object.(metav1.Object).GetName() == created {
			break
		}
	}
	name := createDefinition(t, user(t).RESTConfig())
	require.Eventually(t, func() bool { return seen.has(name) }, limit, often, "a watch has ended")
}

func nodes(t *testing.T, config *rest.Config) error {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = clientset.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	return err
}

// C38: a client certificate is part of the connections, and is renewed all the same.
func TestRegistry_goesOnWithARenewedCertificate(t *testing.T) {
	name := user(t).Namespace(t) // of this test alone
	earlier, err := user(t).AddUser(name, "system:masters")
	require.NoError(t, err)
	later, err := user(t).AddUser(name, "system:masters")
	require.NoError(t, err)
	r, driven := driving(t)
	r.Ensure(one, "earlier", earlier)
	c := begun(t, r, driven)
	clientset, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	certificate := func() authenticationv1.ExtraValue {
		review, err := clientset.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		require.NoError(t, err)
		return review.Status.UserInfo.Extra["authentication.kubernetes.io/credential-id"]
	}
	first := certificate()
	require.NotEmpty(t, first)

	r.Ensure(one, "later", later)
	require.Eventually(t, func() bool { return !assert.ObjectsAreEqual(first, certificate()) }, limit, often, "the new certificate is not used")
	require.NoError(t, c.Context().Err())
	assert.Empty(t, driven, "nothing is engaged anew")
}

// C38: whatever is not known to be the same user of the same cluster is engaged anew.
func TestRegistry_engagesAnewWithOtherCredentials(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(t *testing.T, f *front, ns, earlier string, token func() string) *rest.Config
	}{
		"AnotherUser": {
			reason: "what is in the caches was not for its eyes",
			change: func(t *testing.T, f *front, ns, _ string, _ func() string) *rest.Config {
				return f.with(account(t, ns, "other")())
			},
		},
		"AnotherCluster": {
			reason: "it has taken the place of the one before",
			change: func(_ *testing.T, f *front, _, _ string, token func() string) *rest.Config {
				later := token()
				f.answer(func(w http.ResponseWriter, came, path string) bool {
					if came != later || path != "/api/v1/namespaces/kube-system" {
						return false
					}
					_, _ = w.Write([]byte(`{"metadata":{"name":"kube-system","uid":"another"}}`))
					return true
				})
				return f.with(later)
			},
		},
		"AnotherServer": {
			reason: "connections to it are to be made first",
			change: func(t *testing.T, _ *front, _, _ string, token func() string) *rest.Config {
				return newFront(t).with(token())
			},
		},
		"NobodySays": {
			reason: "before Kubernetes 1.28 nobody says who asks",
			change: func(_ *testing.T, f *front, _, _ string, token func() string) *rest.Config {
				f.answer(func(w http.ResponseWriter, _, path string) bool {
					missing := path == "/apis/authentication.k8s.io/v1/selfsubjectreviews"
					if missing {
						w.WriteHeader(http.StatusNotFound)
					}
					return missing
				})
				return f.with(token())
			},
		},
		"TooLate": {
			reason: "whose the old ones were is not said any more",
			change: func(_ *testing.T, f *front, _, earlier string, token func() string) *rest.Config {
				f.refuse(earlier)
				return f.with(token())
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ns := user(t).Namespace(t)
			token := account(t, ns, "hub")
			f := newFront(t)
			r, driven := driving(t)
			earlier := token()
			r.Ensure(one, "earlier", f.with(earlier))
			c := begun(t, r, driven)

			r.Ensure(one, "later", tc.change(t, f, ns, earlier, token))
			env.Receive(t, c.Context().Done(), "the cluster is still engaged as before")
			fresh := env.Receive(t, driven, "the cluster is not driven again")
			require.NotSame(t, c, fresh, tc.reason)
			require.NoError(t, fresh.Client().List(t.Context(), &corev1.NodeList{}))
		})
	}
}

// C38: a token that is refused ends the engagement: the old one was taken away.
func TestRegistry_saysThatRenewedCredentialsAreRefused(t *testing.T) {
	token := account(t, user(t).Namespace(t), "hub")
	f := newFront(t)
	r, driven := driving(t)
	r.Ensure(one, "earlier", f.with(token()))
	c := begun(t, r, driven)
	r.Ensure(one, "later", f.with("s3cr3t"))
	env.Receive(t, c.Context().Done(), "the cluster is still engaged as before")
	require.Eventually(t, func() bool {
		state, _ := r.State(one)
		return state.Contacted
	}, limit, often)
	_, err := r.Get(one)
	require.EqualError(t, err, "cluster team-a/one is not connected: the API server refuses the credentials of the kubeconfig (401): renew them")
}

// What was on trial when better credentials came decides nothing any more.
func TestRegistry_goesOnWithTheLastOfSeveralTokens(t *testing.T) {
	token := account(t, user(t).Namespace(t), "hub")
	f := newFront(t)
	r, driven := driving(t)
	r.Ensure(one, "earlier", f.with(token()))
	c := begun(t, r, driven)

	tried, on := make(chan struct{}), make(chan struct{})
	meet := sync.OnceFunc(func() { close(tried); <-on })
	f.answer(func(_ http.ResponseWriter, token, _ string) bool {
		if token == "s3cr3t" {
			meet()
		}
		return false
	})
	r.Ensure(one, "refused", f.with("s3cr3t"))
	env.Receive(t, tried, "the token is not tried")
	last := token()
	r.Ensure(one, "last", f.with(last))
	close(on)
	require.Eventually(t, func() bool {
		require.NoError(t, c.Client().List(t.Context(), &corev1.NodeList{}))
		return slices.Contains(f.tokens(), last)
	}, limit, often, "the last token is not used")
	require.NoError(t, c.Context().Err())
	assert.Empty(t, driven, "nothing is engaged anew")
}
