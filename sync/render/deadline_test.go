package render_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"
	"time"

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
			slots := render.NewSlots()
			failed := make(chan error, 1)
			go func() {
				_, _, err := slots.Folder(ctx, "owner", stuckFS{c.files, sync.OnceFunc(func() { close(opened) }), until}, "a", "")
				failed <- err
			}()
			<-opened
			objects, _, err := slots.Folder(t.Context(), "owner", c.files, "b", "")
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

// Work that goes on after its time still takes its slot, so that such work does not pile up.
func TestSlots_areTakenUntilTheWorkEnds(t *testing.T) {
	files := fstest.MapFS{"a/cm.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n")}}
	until, slots := make(chan struct{}), render.NewSlots()
	for i := range max(2, runtime.GOMAXPROCS(0)) {
		ctx, cancel := context.WithCancel(t.Context())
		_, _, err := slots.Folder(ctx, fmt.Sprint("owner ", i), stuckFS{files, cancel, until}, "a", "")
		require.ErrorIs(t, err, context.Canceled)
	}
	ended, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, _, err := slots.Folder(ended, "owner", files, "a", "")
	require.ErrorContains(t, err, "wait for other folders", "all slots are taken")

	close(until)
	objects, _, err := slots.Folder(t.Context(), "owner", files, "a", "")
	require.NoError(t, err, "what was stuck has ended")
	assert.Len(t, objects, 1)
}

// A folder that is tried again while the work goes on does not take the slots of others.
func TestSlots_areTakenOnceByAFolderThatIsTriedAgain(t *testing.T) {
	cm := &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n")}
	files := fstest.MapFS{"a/cm.yaml": cm, "b/cm.yaml": cm}
	until, slots := make(chan struct{}), render.NewSlots()
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := slots.Folder(ctx, "owner", stuckFS{files, cancel, until}, "a", "")
	require.ErrorIs(t, err, context.Canceled)
	for _, again := range []string{"a", "./a/", "b/../a"} {
		_, _, err := slots.Folder(t.Context(), "owner", files, again, "")
		require.ErrorContains(t, err, "has not ended yet", again)
		require.NotContains(t, err.Error(), "split", "it was given up, and may be small")
	}
	for range max(2, runtime.GOMAXPROCS(0)) {
		_, _, err := slots.Folder(t.Context(), "owner", files, "b", "")
		require.NoError(t, err, "another folder")
		_, _, err = slots.Folder(t.Context(), "other", files, "a", "")
		require.NoError(t, err, "another owner, whatever the folder is of")
	}

	close(until)
	require.Eventually(t, func() bool {
		_, _, err := slots.Folder(t.Context(), "owner", files, "a", "")
		return err == nil
	}, time.Minute, time.Millisecond, "what was stuck has ended")
}

// Who waited as long as they wished to are told what helps.
func TestSlots_sayThatAFolderTookTooLong(t *testing.T) {
	files := fstest.MapFS{"a/cm.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n")}}
	until, slots := make(chan struct{}), render.NewSlots()
	t.Cleanup(func() { close(until) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, _, err := slots.Folder(ctx, "owner", stuckFS{files, func() {}, until}, "a", "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, _, err = slots.Folder(t.Context(), "owner", files, "a", "")
	require.ErrorContains(t, err, "took too long and has not ended yet; split the folder")
}
