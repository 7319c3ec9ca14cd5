package hub

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/test/env"
)

// Limit is how long a test waits.
const Limit = env.Limit

// World is the environment of one test: its own namespace on a hub, and a client that reads
// directly from the API server.
type World struct {
	T         *testing.T
	Cluster   *env.Cluster
	Client    client.Client
	Namespace string
}

// NewWorld returns a World on that cluster. The ServiceAccount `default` of its namespace has all
// permissions.
func NewWorld(t *testing.T, c *env.Cluster) *World {
	t.Helper()
	w := &World{T: t, Cluster: c, Client: direct(t, c), Namespace: c.Namespace(t)}
	w.Allow("default", "cluster-admin")
	return w
}

// NewWorldIn is like NewWorld, but creates the namespace with the given name, so that a namespace
// in a user cluster can have the name of one on the hub.
func NewWorldIn(t *testing.T, c *env.Cluster, namespace string) *World {
	t.Helper()
	w := &World{T: t, Cluster: c, Client: direct(t, c), Namespace: namespace}
	require.NoError(t, w.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	t.Cleanup(func() { c.Vacate(namespace) })
	return w
}

// clients has a client of each cluster: a new one asks anew which kinds the API server has.
var clients keyed.Map[*env.Cluster, client.Client]

func direct(t *testing.T, c *env.Cluster) client.Client {
	t.Helper()
	return clients.Of(c, func() client.Client {
		built, err := client.New(c.RESTConfig(), client.Options{Scheme: NewScheme(t)})
		require.NoError(t, err)
		return built
	})
}

// Allow binds a ServiceAccount of the namespace to a ClusterRole, cluster-wide, and returns when the
// API server has noticed it.
func (w *World) Allow(account, role string) {
	w.T.Helper()
	allowed := &rbacv1.ClusterRole{}
	require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKey{Name: role}, allowed))
	w.Create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: account}},
	})
	w.Cluster.AwaitGranted(w.T, w.User(account), "", allowed.Rules...)
}

// User returns the user that a ServiceAccount of the namespace is.
func (w *World) User(account string) string {
	return "system:serviceaccount:" + w.Namespace + ":" + account
}

// Create creates an object and deletes it at the end of the test. If its kind is namespaced and it
// names no namespace, it is created in the test's.
func (w *World) Create(o client.Object) {
	w.T.Helper()
	namespaced, err := w.Client.IsObjectNamespaced(o)
	require.NoError(w.T, err)
	if namespaced && o.GetNamespace() == "" {
		o.SetNamespace(w.Namespace)
	}
	require.NoError(w.T, w.Client.Create(w.T.Context(), o))
	w.T.Cleanup(func() { _ = w.Client.Delete(context.Background(), o) })
}

// CreateGitAuthority creates the Secret `git`, which makes a GitSync trust the git server.
func (w *World) CreateGitAuthority() {
	w.T.Helper()
	w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "git"}, Data: map[string][]byte{"ca.crt": Authority(w.T)}})
}

// Authority returns the certificate of the authority that signs the certificates of the test
// servers.
func Authority(t testing.TB) []byte {
	t.Helper()
	ca, err := env.CA()
	require.NoError(t, err)
	return ca
}

// NewRepo starts a git server for the test and creates a repository on it.
func NewRepo(t *testing.T) (*env.GitServer, *env.GitRepo) {
	t.Helper()
	server, err := env.StartGitServer(env.GitOptions{})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	repo, err := server.CreateRepo(t.Context(), "apps")
	require.NoError(t, err)
	return server, repo
}

// Exists reports whether an object exists, in the test's namespace or cluster-scoped, and reads it.
// It asks again while the API server answers neither yes nor no: it may be too busy, or may not
// serve a new kind yet.
func (w *World) Exists(o client.Object, name string) bool {
	w.T.Helper()
	return w.ExistsIn(w.Namespace, o, name)
}

// ExistsIn is like Exists, in another namespace.
func (w *World) ExistsIn(namespace string, o client.Object, name string) bool {
	w.T.Helper()
	var err error
	answered := w.Eventually(func() bool {
		err = w.Client.Get(w.T.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
		return err == nil || apierrors.IsNotFound(err)
	})
	require.True(w.T, answered, "%v", err)
	return err == nil
}

// AwaitThere waits until an object exists, and reads it.
func (w *World) AwaitThere(o client.Object, name string) {
	w.T.Helper()
	require.True(w.T, w.Eventually(func() bool { return w.Exists(o, name) }), "%T %s is not there", o, name)
}

// AwaitGone waits until an object is gone.
func (w *World) AwaitGone(o client.Object, name string) {
	w.T.Helper()
	require.True(w.T, w.Eventually(func() bool { return !w.Exists(o, name) }), "%T %s is still there", o, name)
}

// Eventually calls ask until it returns true, for up to Limit, and reports whether it did. It asks
// ever less often, because on a busy machine asking is what slows down the answer.
func (w *World) Eventually(ask func() bool) bool {
	ctx, cancel := context.WithTimeout(w.T.Context(), Limit)
	defer cancel()
	began := time.Now()
	for !ask() {
		pause := time.NewTimer(min(max(20*time.Millisecond, time.Since(began)/8), 100*time.Millisecond))
		select {
		case <-ctx.Done():
			pause.Stop()
			return false
		case <-pause.C:
		}
	}
	return true
}

// AwaitSeen reads the object, and waits until the cache of a process has it like that, or newer:
// every pass that begins afterwards knows what was written before.
func (w *World) AwaitSeen(p *Process, o client.Object) {
	w.T.Helper()
	key := client.ObjectKeyFromObject(o)
	require.NoError(w.T, w.Client.Get(w.T.Context(), key, o))
	cached, seen := p.Clusters.Local().Client(), o.DeepCopyObject().(client.Object)
	require.True(w.T, w.Eventually(func() bool {
		if cached.Get(w.T.Context(), key, seen) != nil {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(seen.GetResourceVersion(), o.GetResourceVersion())
		require.NoError(w.T, err)
		return order >= 0
	}), "%T %s is not seen", o, key)
}

// Change edits an object as a user would.
func Change[T client.Object](w *World, o T, edit func(T)) {
	w.T.Helper()
	require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(T)
	edit(o)
	require.NoError(w.T, w.Client.Patch(w.T.Context(), o, client.MergeFrom(before)))
}

// Await reads the object until wanted returns true.
func Await[T reconcile.Object](w *World, o T, what string, wanted func(T) bool) T {
	w.T.Helper()
	ok := w.Eventually(func() bool {
		return w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(o), o) == nil && wanted(o)
	})
	require.True(w.T, ok, "%s; the conditions are %+v", what, o.GetConditions())
	return o
}

// AwaitReady waits until an object is ready at its latest generation.
func AwaitReady[T reconcile.Object](w *World, o T) T {
	w.T.Helper()
	return Await(w, o, "not ready", func(o T) bool {
		return conditions.IsReady(o) && o.GetReconcileStatus().ObservedGeneration == o.GetGeneration()
	})
}

// AwaitReason waits until the condition Ready has the reason at the latest generation, and returns
// its message.
func AwaitReason[T reconcile.Object](w *World, o T, reason string) string {
	w.T.Helper()
	got := Await(w, o, "Ready never has the reason "+reason, func(o T) bool {
		return conditions.GetReason(o, v1alpha1.ReadyCondition) == reason && o.GetReconcileStatus().ObservedGeneration == o.GetGeneration()
	})
	return conditions.GetMessage(got, v1alpha1.ReadyCondition)
}

// Reconcile requests a reconciliation and returns when it was handled.
func Reconcile[T reconcile.Object](w *World, o T) T {
	w.T.Helper()
	at := time.Now().Format(time.RFC3339Nano)
	Change(w, o, func(o T) {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.ReconcileAtAnnotation] = at
		o.SetAnnotations(annotations)
	})
	return Await(w, o, "the request is not handled", func(o T) bool { return o.GetReconcileStatus().LastHandledReconcileAt == at })
}
