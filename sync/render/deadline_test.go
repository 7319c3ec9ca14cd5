package render_test

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render"
)

// stuckFS does not open one file until it is told to.
type stuckFS struct {
	files fstest.MapFS
	open  func()
	until <-chan struct{}
}

func (f stuckFS) Open(name string) (fs.File, error) {
	if name == "a/cm.yaml" {
		f.open()
		<-f.until
	}
	return f.files.Open(name)
}

// Whatever holds up a folder, those who wait for it go on when their time is over.
func TestFolder_returnsWhenItsContextEnds(t *testing.T) {
	cm := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n")}
	cases := map[string]struct {
		reason string
		files  fstest.MapFS
	}{
		"plain":     {"manifests are read", fstest.MapFS{"a/cm.yaml": cm, "b/cm.yaml": cm}},
		"kustomize": {"a kustomization is built", fstest.MapFS{"a/cm.yaml": cm, "b/cm.yaml": cm, "a/kustomization.yaml": {Data: []byte("resources: [cm.yaml]")}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			opened, until := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(until) })
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, _, err := render.Folder(ctx, stuckFS{c.files, sync.OnceFunc(func() { close(opened) }), until}, "a", "")
				failed <- err
			}()
			<-opened
			objects, _, err := render.Folder(t.Context(), c.files, "b", "")
			require.NoError(t, err, c.reason)
			assert.Len(t, objects, 1, "another folder is rendered meanwhile")
			cancel()
			err = <-failed
			var known *render.Error
			require.True(t, errors.As(err, &known), c.reason)
			assert.Equal(t, v1alpha1.BuildFailedReason, known.Reason)
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
}
