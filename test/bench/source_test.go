package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// gitCredentials is the Secret in the system namespace that the GitSyncs of rows name.
const gitCredentials = "git"

// source is a repository that rows push to.
type source struct {
	*env.GitRepo
	server *env.GitServer
}

// startSource starts a git server with one repository, and stores its credentials in the hub.
func startSource(b *testing.B, h *hub) source {
	b.Helper()
	access := env.GitOptions{Username: "reader", Password: "only-for-benchmarks"}
	server, err := env.StartGitServer(access)
	require.NoError(b, err)
	b.Cleanup(server.Stop)
	repo, err := server.CreateRepo(b.Context(), "bench")
	require.NoError(b, err)
	ca, err := env.CA()
	require.NoError(b, err)
	h.create(b, secrets, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{
			"name": gitCredentials, "namespace": system,
			"annotations": map[string]any{v1alpha1.SecretTypeAnnotation: "git"},
		},
		"stringData": map[string]any{"username": access.Username, "password": access.Password, "ca.crt": string(ca)},
	}})
	return source{repo, server}
}

// push replaces the folder with the files, commits, and pushes. It returns the commit and the time
// when the push returned.
func (s source) push(b *testing.B, folder string, files map[string]string) (commit string, at time.Time) {
	b.Helper()
	require.NoError(b, os.RemoveAll(filepath.Join(s.Dir(), folder)))
	named := make(map[string]string, len(files))
	for name, content := range files {
		named[folder+"/"+name] = content
	}
	commit, err := s.Commit(b.Context(), named)
	require.NoError(b, err)
	return commit, time.Now()
}

// gitSync returns a GitSync in the system namespace, which uses Waybill's own permissions. Its
// interval is long, because rows request reconciliations themselves.
func gitSync(name, path string, s source, spec map[string]any) *unstructured.Unstructured {
	whole := map[string]any{
		"url":       s.URL(),
		"path":      path,
		"interval":  "1h",
		"timeout":   "5m",
		"secretRef": map[string]any{"name": gitCredentials},
	}
	for key, value := range spec {
		whole[key] = value
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.GitSyncKind,
		"metadata": map[string]any{"name": name, "namespace": system},
		"spec":     whole,
	}}
}
