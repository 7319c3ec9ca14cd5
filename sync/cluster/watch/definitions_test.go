package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// defining is an API server with CustomResourceDefinitions, all of group example.com.
type defining struct {
	metadata.Getter

	mu       sync.Mutex
	listed   int
	names    []string
	err      error
	watching *apiwatch.FakeWatcher
}

func (s *defining) Metadata() metadata.Interface                         { return s }
func (s *defining) Dynamic() dynamic.Interface                           { return nil }
func (s *defining) Resource(schema.GroupVersionResource) metadata.Getter { return s }

func (s *defining) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed++
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, name := range s.names {
		list.Items = append(list.Items, *definitionOf(name))
	}
	return list, s.err
}

func definitionOf(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name + ".example.com", ResourceVersion: "1"}}
}

func (s *defining) Watch(_ context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // as a server that knows no streaming lists
	}
	if s.err != nil {
		return nil, s.err
	}
	s.watching = apiwatch.NewFake()
	return s.watching, nil
}

func (s *defining) lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// define adds a definition, which those who watch see.
func (s *defining) define(name string) {
	s.mu.Lock()
	watching := s.watching
	s.mu.Unlock()
	watching.Add(definitionOf(name))
}

// answer has the server answer with err from now on, as one that has been restarted, or with the
// given definitions if err is nil.
func (s *defining) answer(err error, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.names = err, names
	if s.watching != nil {
		s.watching.Stop()
	}
}

// waiting are the definitions of a server, and who was notified of changes.
type waiting struct {
	*Definitions[string]
	mu   sync.Mutex
	told []string
}

func newWaiting(t *testing.T, server *defining) *waiting {
	t.Helper()
	w := &waiting{}
	w.Definitions = NewDefinitions(t.Context(), server, func(concerned []string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, concerned...)
	})
	return w
}

// after passes time, and returns who was notified meanwhile.
func (w *waiting) after(d time.Duration) []string {
	<-time.After(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.told
	w.told = nil
	slices.Sort(told)
	return told
}

var mayNotList = apierrors.NewForbidden(crdResource.GroupResource(), "", errors.New("no"))

// An API server that was restarted forbids everything until it knows all rights. Who waits then is
// notified of what arrives later all the same.
func TestDefinitions_goOnAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &defining{}
		w := newWaiting(t, server)
		require.NoError(t, w.Await("a", "example.com").Await(t.Context()))
		require.NoError(t, w.Await("b", "example.org").Await(t.Context()))
		assert.Empty(t, w.after(time.Minute))

		server.answer(mayNotList)
		assert.Empty(t, w.after(time.Second))
		require.ErrorIs(t, w.Await("c", "example.com").Await(t.Context()), mayNotList, "the watch has ended")
		server.answer(nil, "widgets")
		require.Equal(t, []string{"a", "b", "c"}, w.after(retryDenied), "who asked meanwhile got no answer")
		assert.True(t, w.Defines("example.com"))

		server.define("gadgets")
		assert.Equal(t, []string{"a", "c"}, w.after(time.Minute), "from now on only those who wait for the group")
	})
}

// C37: what no caller waits for is not asked for again, and what is refused not often.
func TestDefinitions_areNotAskedForInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &defining{err: mayNotList}
		w := newWaiting(t, server)
		require.ErrorIs(t, w.Await("a", "example.com").Await(t.Context()), mayNotList)
		w.after(10*retryDenied + time.Second)
		assert.Equal(t, 11, server.lists())
		w.Leave("a", nil)
		w.after(10 * retryDenied)
		assert.Equal(t, 11, server.lists())
	})
}
