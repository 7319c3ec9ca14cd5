package webhooks_test

import (
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
	c := admission(t)
	admin, _ := c.admin(t)
	pages, err := filepath.Glob("../api/docs/*.md")
	require.NoError(t, err)
	found := 0
	for _, page := range pages {
		content, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, match := range manifests.FindAllStringSubmatch(string(content), -1) {
			for _, document := range strings.Split(match[1], "\n---\n") {
				found++
				u := &unstructured.Unstructured{}
				require.NoError(t, decode(document, u), "%s:\n%s", page, document)
				if ns := u.GetNamespace(); ns != "" {
					if err := admin.Create(t.Context(), namespaceOf(ns)); err != nil {
						require.True(t, apierrors.IsAlreadyExists(err), err)
					}
				}
				require.NoError(t, admin.Create(t.Context(), u, client.DryRunAll, client.FieldValidation("Strict"),
					client.FieldOwner(v1alpha1.FieldManager)), "%s:\n%s", page, document)
			}
		}
	}
	require.NotZero(t, found)
}
