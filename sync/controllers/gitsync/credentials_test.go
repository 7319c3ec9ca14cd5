package gitsync_test

import (
	"net/http"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// expire has the server let in the bearer of another password than it did.
func expire(server *env.GitServer, was, is string) {
	server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			switch password {
			case was:
				password = ""
			case is:
				password = was
			}
			r.SetBasicAuth(user, password)
			next.ServeHTTP(w, r)
		})
	})
}

// P6, P13: credentials expire while a GitSync uses them. What was delivered stays, and is kept;
// the condition says what to do, and no secret; the Secret's next content is tried at once.
func TestGitSync_credentialsExpire(t *testing.T) {
	const first, second = "first-password", "second-password"
	w := newWorld(t)
	server, err := env.StartGitServer(env.GitOptions{Username: "reader", Password: first})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	w.repo, err = server.CreateRepo(t.Context(), "private")
	require.NoError(t, err)
	secret := &corev1.Secret{ObjectMeta: named("login"), Data: map[string][]byte{
		"username": []byte("reader"), "password": []byte(first), "ca.crt": hub.Authority(t),
	}}
	w.Create(secret)
	w.commit(map[string]string{"a.yaml": configMap("a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.SecretRef.Name = "login" }))
	revision := gs.Status.Revision

	expire(server, first, second)
	w.commit(map[string]string{"a.yaml": configMap("a", "two")})
	hub.Reconcile(w.World, gs)
	message := hub.AwaitReason(w.World, gs, v1alpha1.GitAuthenticationFailedReason)
	for _, password := range []string{first, second} {
		assert.NotContains(t, message, password)
	}
	assert.Equal(t, revision, gs.Status.Revision, "the last good revision is still the one that is there")
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "a"))
	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "a")
	assert.Equal(t, "one", cm.Data["key"], "and it is kept without the server")

	hub.Change(w.World, secret, func(s *corev1.Secret) { s.Data["password"] = []byte(second) })
	hub.Await(w.World, gs, "the rotated Secret is not taken up", func(gs *v1alpha1.GitSync) bool {
		return conditions.IsReady(gs) && gs.Status.Revision != revision
	})
	require.True(t, w.Exists(cm, "a"))
	assert.Equal(t, "two", cm.Data["key"])
}
