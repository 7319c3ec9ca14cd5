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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A log that is followed ends when the right to read it is withdrawn, which API servers do not ask for again.
func TestFollowLogs_rightsWithdrawn(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	name := keeperOf(t, api, ns)
	s := openShared(t, account(t, api))
	by, ok := s.server.door.(*oidcDoor)
	require.True(t, ok)
	v := by.viewers.of(name, nil)
	log, pod := io.Pipe()
	t.Cleanup(func() { _ = pod.Close() })
	w := httptest.NewRecorder()
	s.server.pace.review = 0
	told := &told{server: s.server, visit: visit{viewer: v}, w: w, control: http.NewResponseController(w), object: &shown{in: v.hub, what: authorizationv1.ResourceAttributes{
		Verb: "get", Resource: "pods", Subresource: "log", Namespace: ns, Name: "web",
	}}}
	ended := make(chan error, 1)
	go func() { ended <- told.lines(t.Context(), log, time.Time{}) }()
	for _, line := range []string{"theirs to read", "this is read once the first was sent"} {
		_, err := fmt.Fprintln(pod, line)
		require.NoError(t, err)
	}
	c, err := client.New(api.RESTConfig(), client.Options{})
	require.NoError(t, err)
	require.NoError(t, c.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}))
	api.AwaitRevoked(t, name, ns, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}})
	s.clock.SetTime(s.clock.Now().Add(2 * reviewAgain))
	go func() { _, _ = fmt.Fprintln(pod, "not any more") }() // it is not read any more
	select {
	case err := <-ended:
		assert.ErrorContains(t, err, "You may not get pods/log web in namespace "+ns)
	case <-time.After(limit):
		require.Fail(t, "it goes on")
	}
	assert.Contains(t, w.Body.String(), "theirs to read")
	assert.NotContains(t, w.Body.String(), "not any more")
}
