package metadata

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
)

// stored saves definitions of so many values on a disk, and returns the store, which has a Room, and their handle.
func stored(t *testing.T, values int, room int64) (*Store, v1alpha1.MetadataHandle) {
	t.Helper()
	s := &Store{Directory: t.TempDir()}
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "Large", "apiVersion": "v1", "spec": make([]any, values)}}
	handle, err := s.Save(t.Context(), types.UID("00000000-0000-0000-0000-000000000001"), v1alpha1.MetadataOnDisk, []*unstructured.Unstructured{object})
	require.NoError(t, err)
	s.Room = NewRoom(room)
	return s, handle
}

// C21: large definitions are read one after the other where there is not enough memory for all, and no namespace, nor all of
// them, have every worker wait for that.
func TestBorrow_isBounded(t *testing.T) {
	t.Parallel()
	s, handle := stored(t, 2*small/valueSize, 3*small)
	first, done, err := s.Borrow(t.Context(), "a", handle)
	require.NoError(t, err)
	require.Len(t, first, 1)

	require.True(t, s.Room.waiting.TryAcquire("a"))
	require.True(t, s.Room.waiting.TryAcquire("a"))
	_, _, err = s.Borrow(t.Context(), "a", handle)
	require.ErrorIs(t, err, ErrBusy, "two of the namespace wait already")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Borrow(over, "b", handle)
	require.ErrorIs(t, err, context.Canceled, "one of another namespace may wait")
	served := make(chan error)
	go func() {
		_, done, err := s.Borrow(t.Context(), "b", handle)
		done()
		served <- err
	}()
	done()
	done() // once is enough
	require.NoError(t, <-served)
	_, done, err = s.Borrow(t.Context(), "a", handle)
	require.NoError(t, err)
	defer done()
	assert.False(t, s.Room.free.TryAcquire(2*small), "they count while they are in use")
}

// Small definitions never wait, and those that are larger than the Room are read alone.
func TestBorrow_readsAllSizes(t *testing.T) {
	t.Parallel()
	s, handle := stored(t, 10, 1)
	require.NoError(t, s.Room.free.Acquire(t.Context(), 1))
	size, err := measure(mustRead(t, s, handle), handle.Digest)
	require.NoError(t, err)
	s.Room.sizes.Put(handle.Digest, size, 1)
	_, done, err := s.Borrow(t.Context(), "a", handle)
	require.NoError(t, err)
	done()

	s, handle = stored(t, 2*small/valueSize, 1)
	_, done, err = s.Borrow(t.Context(), "a", handle)
	require.NoError(t, err)
	assert.False(t, s.Room.free.TryAcquire(1))
	done()
	assert.True(t, s.Room.free.TryAcquire(1))
}

func mustRead(t *testing.T, s *Store, handle v1alpha1.MetadataHandle) []byte {
	t.Helper()
	packed, _, err := s.read(t.Context(), handle)
	require.NoError(t, err)
	return packed
}
