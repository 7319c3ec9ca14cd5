package dashboard

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// Who may not read the kubeconfig of a user cluster any more has no way into it: a log that is followed ends, and a page that is
// open is to be read again. The cluster itself does not know, and would go on.
func TestTold_theWayIsWithdrawn(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	k := cluster(ns, "berlin")
	k.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "of-waybill", Key: "kubeconfig"}
	c := create(t, api, k)
	require.NoError(t, c.Create(t.Context(), kubeconfigOf(ns, "of-waybill", api.Kubeconfig())))
	name := keeperOf(t, api, ns)
	s := openShared(t, account(t, api))
	by, ok := s.server.door.(*oidcDoor)
	require.True(t, ok)
	v := by.viewers.of(name, nil)
	in, err := v.cluster(t.Context(), client.ObjectKeyFromObject(k))
	require.NoError(t, err)
	to, end, err := s.server.inventory.feed.subscribe(v, nil)
	require.NoError(t, err)
	defer end()
	log, pod := io.Pipe()
	t.Cleanup(func() { _ = pod.Close() })
	w := httptest.NewRecorder()
	s.server.pace.review = 0
	page := &told{server: s.server, visit: visit{viewer: v}, stream: to, w: w, control: http.NewResponseController(w), reached: v.now(), object: &shown{
		at: client.ObjectKeyFromObject(k), in: in, what: authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: ns, Name: "web"},
	}}
	require.Equal(t, "object", page.sight(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- page.lines(t.Context(), log, time.Time{}) }()
	for _, line := range []string{"theirs to read", "this is read once the first was sent"} {
		_, err := fmt.Fprintln(pod, line)
		require.NoError(t, err)
	}
	require.NoError(t, c.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}))
	api.AwaitRevoked(t, name, ns, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"kubernetesclusters"}, Verbs: []string{"get"}})
	go func() { _, _ = fmt.Fprintln(pod, "not any more") }() // it is not read any more
	select {
	case err := <-ended:
		assert.ErrorContains(t, err, "forbidden")
	case <-time.After(limit):
		require.Fail(t, "it goes on")
	}
	assert.Contains(t, w.Body.String(), "theirs to read")
	assert.NotContains(t, w.Body.String(), "not any more")
	assert.Empty(t, page.sight(t.Context()))
}

// While the hub is away, no way is withdrawn; but not for ever.
func TestTold_theHubIsAway(t *testing.T) {
	v := newViewer("", nil, fleet.NewHub("hub", &rest.Config{Host: "https://127.0.0.1:1"}))
	now := time.Now()
	v.now = func() time.Time { return now }
	page := &told{visit: visit{viewer: v}, reached: now, object: &shown{at: types.NamespacedName{Namespace: "fleet", Name: "berlin"}}}
	now = now.Add(reviewLost - time.Second)
	require.NoError(t, page.reaches(t.Context()))
	now = now.Add(2 * time.Second)
	require.ErrorIs(t, page.reaches(t.Context()), fleet.ErrUnanswered)
	page.object.at = types.NamespacedName{}
	assert.NoError(t, page.reaches(t.Context()), "the way into the hub is that of the session")
}
