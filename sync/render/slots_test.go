package render_test

import (
	"context"
	"io/fs"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render"
)

// A kustomization whose build takes long hinders no folder of plain manifests, however many there are.
func TestSlots_areFreeWhileKustomizationsAreBuilt(t *testing.T) {
	cm := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n")}
	files := fstest.MapFS{"plain/cm.yaml": cm, "built/kustomization.yaml": {}, "mixed/cm.yaml": cm, "mixed/below/kustomization.yaml": {}}
	const builds = 100 // more than there are slots
	begun, until := make(chan string), make(chan struct{})
	slots := render.NewSlots(func(_ context.Context, _ fs.FS, dir string) ([]manifest.Object, []manifest.Problem, error) {
		begun <- dir
		<-until
		return nil, []manifest.Problem{{File: dir}}, nil
	})
	ended := make(chan int, builds)
	for i := range builds {
		folder := []string{"built", "mixed"}[i%2]
		go func() {
			objects, problems, err := slots.Folder(t.Context(), files, folder, "")
			assert.NoError(t, err)
			assert.Len(t, problems, 1)
			ended <- len(objects)
		}()
	}
	for range builds {
		assert.Contains(t, []string{"built", "mixed/below"}, <-begun)
	}
	objects, _, err := slots.Folder(t.Context(), files, "plain", "")
	require.NoError(t, err)
	assert.Len(t, objects, 1)

	close(until)
	sum := 0
	for range builds {
		sum += <-ended
	}
	assert.Equal(t, builds/2, sum, "what is beside a kustomization is rendered, too")
}

// stuckFS holds up who opens one file.
type stuckFS struct {
	files         fstest.MapFS
	opened, until chan struct{}
}

func (f stuckFS) Open(name string) (fs.File, error) {
	if name == "a/cm.yaml" {
		f.opened <- struct{}{}
		<-f.until
	}
	return f.files.Open(name)
}

// Who waits for a slot goes on when their time is over, and gets one as soon as it is free.
func TestSlots_areWaitedFor(t *testing.T) {
	files := fstest.MapFS{"a/cm.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n")}}
	stuck, slots := stuckFS{files, make(chan struct{}), make(chan struct{})}, render.NewSlots(nil)
	for range runtime.GOMAXPROCS(0) {
		go func() { _, _, _ = slots.Folder(t.Context(), stuck, "a", "") }()
		<-stuck.opened
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, _, err := slots.Folder(ctx, files, "a", "")
		failed <- err
	}()
	cancel()
	err := <-failed
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "wait for other folders")
	var known *render.Error
	require.ErrorAs(t, err, &known)
	assert.Equal(t, v1alpha1.BuildFailedReason, known.Reason)

	close(stuck.until)
	objects, _, err := slots.Folder(t.Context(), files, "a", "")
	require.NoError(t, err)
	assert.Len(t, objects, 1)
}
