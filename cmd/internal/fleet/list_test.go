package fleet

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// discovered are ConfigMaps, and nothing else.
var discovered = map[string]string{
	"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis":   `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["list"]}]}`,
}

// endless is an API server whose ConfigMaps have no end, or so many pages.
func endless(t *testing.T, perPage, pages int) *rest.Config {
	t.Helper()
	item := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`
	items := strings.TrimSuffix(strings.Repeat(item+",", perPage), ",")
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if document, ok := discovered[r.URL.Path]; ok {
			_, _ = io.WriteString(w, document)
			return
		}
		next := "more"
		if asked++; pages > 0 && asked%pages == 0 {
			next = ""
		}
		kind := `"kind":"ConfigMapList","apiVersion":"v1"`
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
			kind = `"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"`
		}
		_, _ = fmt.Fprintf(w, `{%s,"metadata":{"continue":%q,"resourceVersion":"1"},"items":[%s]}`, kind, next, items)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// A cluster that is not trusted has no lists without end; the user of the command line has whatever there is.
func TestList_isBounded(t *testing.T) {
	const perPage, most = 200, 1000
	for name, tc := range map[string]struct {
		reason string
		most   int
		pages  int
		fails  bool
	}{
		"Endless":   {"it never says that this is all", most, 0, true},
		"Most":      {"as many as there may be", most, most / perPage, false},
		"OwnToRead": {"it is the user's own cluster", 0, most/perPage + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(types.NamespacedName{Name: "berlin"}, endless(t, perPage, tc.pages))
			c.most = tc.most
			objects, err := c.List(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
			metadata, metaErr := c.ListMetadata(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "", "")
			if !tc.fails {
				require.NoError(t, err, tc.reason)
				require.NoError(t, metaErr, tc.reason)
				assert.Equal(t, tc.pages*perPage, len(objects))
				assert.Equal(t, tc.pages*perPage, len(metadata))
				return
			}
			require.ErrorContains(t, err, "the number of ConfigMap in a list exceeds the limit of 1000")
			require.ErrorContains(t, metaErr, "the number of configmaps in a list exceeds the limit of 1000")
			assert.True(t, TooMuch(err))
		})
	}
}
