package metadata

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/reconcile/turns"
)

const (
	// small is what definitions may take without a place in a Room: those of nearly all applications take less.
	small = 8 << 20
	// valueSize is what a value takes once it is decoded, and once more in a copy.
	valueSize = 200
	// maxWaiting is how many may wait for a place in a Room. Those that wait hold a worker of their controller.
	maxWaiting = 3
	// maxSizes is how many sizes a Room remembers.
	maxSizes = 10_000
)

// ErrBusy means that a Room is full, and that enough wait for a place already: try again later.
var ErrBusy = errors.New("other snapshots with large definitions are being read")

// Room bounds how much memory the definitions take that are borrowed at a time. Large ones wait for one another, in the
// order in which they come; small ones do not count. It is safe for concurrent use.
type Room struct {
	bytes   int64
	free    *semaphore.Weighted
	waiting *turns.Turns
	sizes   *keyed.Recent[string, int64] // by digest, so they are those of the text
}

// NewRoom returns a Room of that many bytes. What takes more has it for itself.
func NewRoom(bytes int64) *Room {
	return &Room{
		bytes: bytes, free: semaphore.NewWeighted(bytes), waiting: turns.NewEven(maxWaiting), sizes: keyed.NewRecent[string, int64](maxSizes),
	}
}

// Borrow is Load of definitions that have a place in the Room of the Store, if it has one, until done is called. Whoever
// borrows some must not have others. The error is ErrBusy if others have to wait already, some of them for the same
// namespace.
func (s *Store) Borrow(ctx context.Context, namespace string, handle v1alpha1.MetadataHandle) (objects []*unstructured.Unstructured, done func(), err error) {
	done = func() {}
	if s.Room != nil {
		size, err := s.size(ctx, namespace, handle)
		if err != nil {
			return nil, done, err
		}
		if done, err = s.Room.take(ctx, namespace, size); err != nil {
			return nil, func() {}, err
		}
	}
	if objects, err = s.Load(ctx, handle); err != nil {
		done()
	}
	return objects, done, err
}

// take waits for a place, and returns the function that gives it back.
func (r *Room) take(ctx context.Context, namespace string, size int64) (done func(), err error) {
	if size <= small {
		return func() {}, nil
	}
	size = min(size, r.bytes)
	done = sync.OnceFunc(func() { r.free.Release(size) })
	if r.free.TryAcquire(size) {
		return done, nil
	}
	if !r.waiting.TryAcquire(namespace) {
		return nil, ErrBusy
	}
	defer r.waiting.Release(namespace)
	if err := r.free.Acquire(ctx, size); err != nil {
		return nil, fmt.Errorf("wait for memory: %w", err)
	}
	return done, nil
}

// size returns how much memory definitions take at the most. To find it out takes no more than their compressed bytes.
func (s *Store) size(ctx context.Context, namespace string, handle v1alpha1.MetadataHandle) (int64, error) {
	if size, known := s.Room.sizes.Lookup(handle.Digest); known {
		return size, nil
	}
	if err := s.check(handle); err != nil {
		return 0, err
	}
	chunks := int64(maxChunks)
	if handle.Object != nil {
		chunks = int64(handle.Object.Chunks)
	}
	done, err := s.Room.take(ctx, namespace, chunks*chunkSize)
	if err != nil {
		return 0, err
	}
	defer done()
	packed, where, err := s.read(ctx, handle)
	if err != nil {
		return 0, err
	}
	size, err := measure(packed, handle.Digest)
	if err != nil {
		return 0, damaged("%s: %w", where, err)
	}
	s.Room.sizes.Put(handle.Digest, size, 1)
	return size, nil
}

// measure returns how much memory a compressed text takes with its objects at the most, if it has the digest.
func measure(packed []byte, digest string) (int64, error) {
	text, err := open(packed)
	if err != nil {
		return 0, err
	}
	sum, n := sha256.New(), &counter{}
	length, err := io.Copy(io.MultiWriter(sum, n), text)
	if err != nil {
		return 0, fmt.Errorf("decompress: %w", err)
	}
	if digestOf(sum.Sum(nil)) != digest {
		return 0, errDigest
	}
	return int64(len(packed)) + length + n.values*valueSize, nil
}

// counter counts what may begin a value in a JSON text. What is in strings counts as well.
type counter struct{ values int64 }

func (c *counter) Write(text []byte) (int, error) {
	for _, begin := range []string{"{", "[", ",", ":"} {
		c.values += int64(bytes.Count(text, []byte(begin)))
	}
	return len(text), nil
}
