package dashboard

import (
	"context"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// restored is an API server with one GitSync at resource version 100, and none at 50, which is what it goes back to.
type restored struct {
	client.WithWatch

	mu       sync.Mutex
	version  int
	refusals int
	watching *watch.FakeWatcher
}

func (r *restored) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	list.SetResourceVersion(strconv.Itoa(r.version))
	if found, ok := list.(*v1alpha1.GitSyncList); ok && r.version == 100 {
		found.Items = make([]v1alpha1.GitSync, 1)
		found.Items[0].Name, found.Items[0].ResourceVersion = "catalog", "100"
	}
	return nil
}

func (r *restored) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusals > 0 {
		r.refusals--
		return nil, syscall.ECONNREFUSED
	}
	r.watching = watch.NewFake()
	return r.watching, nil
}

func (r *restored) watched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watching != nil
}

// goBack ends the watch, refuses a connection, and goes on with what was there before.
func (r *restored) goBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version, r.refusals = 50, 1
	seen := &v1alpha1.GitSync{}
	seen.Name, seen.ResourceVersion = "catalog", "100"
	r.watching.Modify(seen) // a watch that ends without any event is listed again in any case
	r.watching.Stop()
}

// A watch that goes on from before the restore of etcd would show nothing for long: what there is is listed again.
func TestFollow_apiServerGoesBackInTime(t *testing.T) {
	api := &restored{version: 100}
	f := newFollow(listing{api}, &v1alpha1.GitSync{}, func() client.ObjectList { return &v1alpha1.GitSyncList{} }, func(string, string) {})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx) }()
	require.Eventually(t, func() bool { return f.informer.HasSynced() && api.watched() }, limit, often)
	require.Len(t, objects[*v1alpha1.GitSync](f), 1)
	api.goBack()
	require.Eventually(t, func() bool { return len(objects[*v1alpha1.GitSync](f)) == 0 }, limit, often, "it is not there any more")
	cancel()
	assert.NoError(t, <-ended)
}
