package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/webhooks"
	"waybill.dev/waybill/webhooks/registration"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http logs every client that does not trust it
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	env.Main(m)
}

// afterwards is a context for what cleans up: the test's own has ended by then.
func afterwards(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }

// patience is how long a test waits for what takes a second on an idle machine.
const patience = env.Limit

// often is how often it looks.
const often = 20 * time.Millisecond

// busyTimeout is for what API servers, and decisions, go on without when it takes too long: a test
// of what it does should not depend on how busy the machine is.
const busyTimeout = 30 * time.Second

const crds = "../charts/waybill/crds"

// kinds is the scheme of all clients, of which there are some for each case: to build it takes longer
// than most cases do.
var kinds = sync.OnceValues(func() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s))
})

func scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s, err := kinds()
	require.NoError(t, err)
	return s
}

// cluster is an API server with our kinds, whose requests are admitted by a server of ours.
type cluster struct {
	*env.Cluster
	server *server
}

var admitted struct {
	sync.Mutex
	server *server
}

// admission returns the cluster that tests of rules share.
func admission(t *testing.T) *cluster {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "admission", CRDs: []string{crds}})
	admitted.Lock()
	defer admitted.Unlock()
	if admitted.server == nil {
		// It serves until the test binary ends, longer than the test that starts it.
		admitted.server = start(context.WithoutCancel(t.Context()), t, c.RESTConfig(), nil)
		admitted.server.awaitReady(t)
	}
	return &cluster{Cluster: c, server: admitted.server}
}

// server is a running webhook server.
type server struct {
	url, health string
	stop        context.CancelFunc
	ended       chan error
}

// start runs a server that is registered by URL.
func start(ctx context.Context, t *testing.T, config *rest.Config, change func(*webhooks.Options)) *server {
	t.Helper()
	listen := env.Address(t)
	s := &server{url: "https://" + listen, health: env.Address(t), ended: make(chan error, 1)}
	endpoint, err := registration.ParseURL(s.url)
	require.NoError(t, err)
	o := webhooks.Options{
		Registration: registration.Options{
			Namespace: v1alpha1.DefaultSystemNamespace, Endpoint: endpoint, Listen: listen, Settle: time.Second,
			LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 200 * time.Millisecond,
			InjectionTimeout: busyTimeout,
		},
		MetricsAddress:      "0",
		HealthAddress:       s.health,
		PodDryRun:           true,
		PodDryRunTimeout:    busyTimeout,
		RemoteDryRunTimeout: busyTimeout,
	}
	if change != nil {
		change(&o)
	}
	ctx, s.stop = context.WithCancel(ctx)
	go func() { s.ended <- webhooks.Run(ctx, config, o) }()
	return s
}

// serve is start for one test.
func serve(t *testing.T, config *rest.Config, change func(*webhooks.Options)) *server {
	t.Helper()
	s := start(t.Context(), t, config, change)
	t.Cleanup(func() { s.end(t) })
	return s
}

// end stops the server and returns when it has ended.
func (s *server) end(t *testing.T) {
	t.Helper()
	s.stop()
	if err, ok := <-s.ended; ok {
		close(s.ended)
		require.NoError(t, err)
	}
}

// ready is the body of /readyz where it says no, else empty.
func (s *server) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.health+"/readyz?verbose", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return nil
}

func (s *server) awaitReady(t *testing.T) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool { err = s.ready(t.Context()); return err == nil }, patience, 20*time.Millisecond,
		"the server does not become ready")
	require.NoError(t, err)
}

// warnings are what the API server said beside its answers.
type warnings struct {
	sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since it was last called.
func (w *warnings) take() []string {
	w.Lock()
	defer w.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

// admin returns a client that may do everything.
func (c *cluster) admin(t *testing.T) (client.Client, *warnings) {
	t.Helper()
	return newClient(t, c.RESTConfig(), c.mapper(t))
}

// mappers has what is known of the kinds of each cluster: a new client would ask for all of them.
var mappers keyed.Map[*env.Cluster, meta.RESTMapper]

func (c *cluster) mapper(t *testing.T) meta.RESTMapper {
	t.Helper()
	return mappers.Of(c.Cluster, func() meta.RESTMapper {
		admin, err := rest.HTTPClientFor(c.RESTConfig())
		require.NoError(t, err)
		mapper, err := apiutil.NewDynamicRESTMapper(c.RESTConfig(), admin)
		require.NoError(t, err)
		return mapper
	})
}

// user returns a client of a user with these permissions in a namespace; in all of the cluster
// where that is empty.
func (c *cluster) user(t *testing.T, namespace string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	admin, _ := c.admin(t)
	name := fmt.Sprintf("user-%d", time.Now().UnixNano())
	c.grant(t, admin, name, namespace, rules...)
	config, err := c.AddUser(name)
	require.NoError(t, err)
	as, _ := newClient(t, config, c.mapper(t))
	return named{Client: as, name: name}
}

// named is a client that knows who it is.
type named struct {
	client.Client
	name string
}

func (c *cluster) grant(t *testing.T, admin client.Client, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	about := metav1.ObjectMeta{GenerateName: "test-", Namespace: namespace}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	var role, binding client.Object
	if namespace == "" {
		role = &rbacv1.ClusterRole{ObjectMeta: about, Rules: rules}
		require.NoError(t, admin.Create(t.Context(), role))
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: about, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.GetName()}}
	} else {
		role = &rbacv1.Role{ObjectMeta: about, Rules: rules}
		require.NoError(t, admin.Create(t.Context(), role))
		binding = &rbacv1.RoleBinding{ObjectMeta: about, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.GetName()}}
	}
	require.NoError(t, admin.Create(t.Context(), binding))
	if len(rules) > 0 {
		c.AwaitGranted(t, user, namespace, rules[len(rules)-1]) // what comes with it comes at once
	}
}

// newClient returns a client that asks the API server for the kinds that there are, unless it is given them.
func newClient(t *testing.T, config *rest.Config, mapper meta.RESTMapper) (client.Client, *warnings) {
	t.Helper()
	config = rest.CopyConfig(config)
	w := &warnings{}
	config.WarningHandler = w
	c, err := client.New(config, client.Options{Scheme: scheme(t), Mapper: mapper})
	require.NoError(t, err)
	return c, w
}

// rule is a permission on resources of one group.
func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// write is what a user needs to write objects of ours at all.
func write(resource string) rbacv1.PolicyRule {
	return rule(v1alpha1.Group, []string{resource}, "get", "create", "update", "patch", "delete")
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
