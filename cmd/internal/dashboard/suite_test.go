package dashboard

import (
	"context"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/render/isolated"
	"waybill.dev/waybill/test/env"
)

const (
	limit = env.Limit
	often = 20 * time.Millisecond
)

func TestMain(m *testing.M) {
	isolated.Main() // pages render in processes of their own
	env.Main(m)
}

func hub(t testing.TB) *env.Cluster {
	t.Helper()
	return env.Shared(t, env.Options{Name: "hub", NoControllers: true, CRDs: []string{"../../../charts/waybill/crds"}})
}

// scheme has our kinds and those of Kubernetes.
func scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(s))
	require.NoError(t, v1alpha1.AddToScheme(s))
	return s
}

// create creates objects with the status that they have, and deletes them at the test's end.
func create(t testing.TB, cluster *env.Cluster, objects ...client.Object) client.Client {
	t.Helper()
	c, err := client.New(cluster.RESTConfig(), client.Options{Scheme: scheme(t)})
	require.NoError(t, err)
	for _, object := range objects {
		wanted := object.DeepCopyObject().(client.Object)
		require.NoError(t, c.Create(t.Context(), object))
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), limit) // the test's own has ended
			defer cancel()
			_ = c.Delete(ctx, object) // the test may have deleted it
		})
		wanted.SetResourceVersion(object.GetResourceVersion())
		require.NoError(t, c.Status().Update(t.Context(), wanted))
	}
	return c
}

// mayRead is the right to read our kinds.
var mayRead = rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}

// reader returns a user who may read our kinds in a namespace, and nothing else.
func reader(t testing.TB, api *env.Cluster, namespace string) *rest.Config {
	t.Helper()
	config, err := api.AddUser(namespace)
	require.NoError(t, err)
	allow(t, api, namespace, namespace, mayRead)
	return config
}

// allow gives a user rights in a namespace, or in all of them if it is empty, and returns when the API server knows. Who has been
// given rights there keeps these.
func allow(t testing.TB, api *env.Cluster, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	c, err := client.New(api.RESTConfig(), client.Options{})
	require.NoError(t, err)
	meta, subjects := metav1.ObjectMeta{Namespace: namespace, Name: user}, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	role, binding := client.Object(&rbacv1.Role{ObjectMeta: meta, Rules: rules}), client.Object(&rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}, Subjects: subjects,
	})
	if namespace == "" {
		role, binding = &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}, Subjects: subjects,
		}
	}
	for _, object := range []client.Object{role, binding} {
		require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), object)))
	}
	for _, rule := range rules {
		if rule.Resources[0] == "*" {
			rule.Resources = []string{map[bool]string{true: "gitsyncs", false: "secrets"}[rule.APIGroups[0] == v1alpha1.Group]}
		}
		if rule.APIGroups[0] == "*" {
			rule.APIGroups = []string{""}
		}
		api.AwaitGranted(t, user, namespace, rule)
	}
}

// browser looks at a dashboard.
type browser struct {
	*http.Client
	t       testing.TB
	address string
	server  *server
	session *session
}

// open starts a dashboard for a user, and opens it.
func open(t testing.TB, config *rest.Config, namespace string) *browser {
	t.Helper()
	b := start(t, config, namespace)
	require.Equal(t, http.StatusOK, b.get(b.session.path()).status)
	return b
}

// start starts a dashboard, whose address was not opened yet. It has read what it may when it returns.
func start(t testing.TB, config *rest.Config, namespace string) *browser {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s, one, err := newLocal(ctx, fleet.NewHub("hub", config), namespace)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 2)
	go func() { ended <- s.inventory.run(ctx) }()
	go func() { ended <- s.serve(listener, nil) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
	for _, f := range s.inventory.all() {
		require.Eventually(t, func() bool { return f.informer.HasSynced() || f.stands().State == forbidden }, limit, often, f.kind)
	}
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &browser{Client: &http.Client{Jar: jar}, t: t, address: "http://" + listener.Addr().String(), server: s, session: one}
}

// answer is what a browser got.
type answer struct {
	status int
	body   string
	header http.Header
}

func (b *browser) get(path string, change ...func(*http.Request)) answer {
	b.t.Helper()
	return b.do(http.MethodGet, path, change...)
}

// post sends a form, and does not follow where the answer leads.
func (b *browser) post(path string, form url.Values, change ...func(*http.Request)) answer {
	b.t.Helper()
	follow := b.CheckRedirect
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer func() { b.CheckRedirect = follow }()
	return b.do(http.MethodPost, path, append(change, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Body = io.NopCloser(strings.NewReader(form.Encode()))
	})...)
}

// text returns what people read of a page, and its markup, without what every page has.
func (a answer) text() string {
	_, content, has := strings.Cut(a.body, "<main")
	if !has {
		content = a.body
	}
	return html.UnescapeString(content)
}

// hidden returns the fields that a page's first form sends without being seen.
func (a answer) hidden() url.Values {
	form := url.Values{}
	_, content, _ := strings.Cut(a.body, "<main") // each page has a form to sign out with in front of that
	body, _, _ := strings.Cut(content[max(0, strings.Index(content, `method="post" action="/`)):], "</form>")
	for _, match := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(body, -1) {
		form.Add(match[1], html.UnescapeString(match[2]))
	}
	return form
}

func (b *browser) do(method, path string, change ...func(*http.Request)) answer {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.address+path, nil)
	require.NoError(b.t, err)
	for _, f := range change {
		f(request)
	}
	response, err := b.Do(request)
	require.NoError(b.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return answer{status: response.StatusCode, body: string(body), header: response.Header}
}
