package cluster

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What cannot be decoded is quoted in errors, which those that watch keep.
func TestCounted_errorsAreShort(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"` + long +
		`","details":{"name":"` + long + `","causes":[{"message":"` + long + `"}]}}`
	cases := map[string]http.HandlerFunc{
		"NoVersion": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"List","x":"`+long+`"}`)
		},
		"Number": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"generation":`+strings.Repeat("9", 1<<20)+`}}`)
		},
		"Status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, status)
		},
		"Event": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") == "" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = io.WriteString(w, `{"type":"ERROR","object":`+status+`}`)
		},
	}
	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := engagedWith(t, newHostile(t, map[string]http.HandlerFunc{configMapPath: answer}))
			_, err := c.Metadata().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			require.True(t, err != nil && len(err.Error()) < 2*longestError)
			_, err = c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			require.True(t, err == nil || len(err.Error()) < 2*longestError)
			if name == "Status" || name == "Event" {
				require.True(t, apierrors.IsNotFound(err), "it is still known what it is")
			}
			w, err := c.Metadata().Resource(configMaps).Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				require.True(t, len(err.Error()) < 2*longestError)
				return
			}
			defer w.Stop()
			for e := range w.ResultChan() {
				if failed, ok := e.Object.(*metav1.Status); ok {
					require.Less(t, failed.Size(), 8*longestError)
				}
			}
		})
	}
}
