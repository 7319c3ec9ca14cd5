package webhooks_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// manifests are the blocks of a page that hold an object.
var manifests = regexp.MustCompile("(?ms)^```yaml\n(apiVersion:.*?)^```")

// What the documentation shows is what admission accepts, field by field.
func TestDocs_examplesAreAccepted(t *testing.T) {
	pages, err := filepath.Glob("../api/docs/*.md")
	require.NoError(t, err)
	found := map[string][]string{}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, match := range manifests.FindAllStringSubmatch(string(content), -1) {
			found[page] = append(found[page], match[1])
		}
	}
	assertAccepted(t, found)
}

// A44, A46, C5: so is what examples/ shows.
func TestExamples_areAccepted(t *testing.T) {
	found := map[string][]string{}
	require.NoError(t, filepath.WalkDir("../examples", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), v1alpha1.Group+"/") {
			found[path] = []string{string(content)}
		}
		return err
	}))
	assertAccepted(t, found)
}

// assertAccepted tries out every object of ours in every file, as a GitSync would deliver it.
func assertAccepted(t *testing.T, files map[string][]string) {
	t.Helper()
	c := admission(t)
	admin, _ := c.admin(t)
	namespace := c.Namespace(t)
	require.NotEmpty(t, files)
	for file, texts := range files {
		for _, document := range strings.Split(strings.Join(texts, "\n---\n"), "\n---\n") {
			u := &unstructured.Unstructured{}
			require.NoError(t, decode(document, u), "%s:\n%s", file, document)
			if u.GroupVersionKind().Group != v1alpha1.Group {
				continue
			}
			if u.GetNamespace() == "" {
				u.SetNamespace(namespace)
			}
			if err := admin.Create(t.Context(), namespaceOf(u.GetNamespace())); err != nil {
				require.True(t, apierrors.IsAlreadyExists(err), err)
			}
			restorable(t, admin, u)
			err := admin.Create(t.Context(), u, client.DryRunAll, client.FieldValidation("Strict"), client.FieldOwner(v1alpha1.FieldManager))
			if !apierrors.IsAlreadyExists(err) { // it is asked for after admission
				require.NoError(t, err, "%s:\n%s", file, document)
			}
		}
	}
}

// A60, A61: what a health check must and must not do cannot be checked for its author; so the
// page of the kind says it.
func TestDocs_sayWhatAHealthCheckPromises(t *testing.T) {
	content, err := os.ReadFile("../api/docs/application.md")
	require.NoError(t, err)
	page := strings.Join(strings.Fields(string(content)), " ")
	require.Contains(t, page, "The probe should succeed only when the whole application is ready, and the Pod should do nothing else")
}
