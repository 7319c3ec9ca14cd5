package applicationrollback_test

import (
	"context"
	"errors"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// aparts are the namespaces of tests that run a controller of their own.
var aparts sync.Map

func apart(namespace string) bool {
	_, found := aparts.Load(namespace)
	return found
}

// some is a client that knows only some rollbacks.
type some struct {
	client.Client

	known func(namespace string) bool
}

func (s *some) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, is := obj.(*v1alpha1.ApplicationRollback); is && !s.known(key.Namespace) {
		return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("applicationrollbacks").GroupResource(), key.Name)
	}
	return s.Client.Get(ctx, key, obj, opts...)
}

// life is that of a process that is killed as soon as it has changed something.
type life struct {
	mu    sync.Mutex
	over  bool
	did   []string
	ended chan struct{}
}

var errKilled = errors.New("the process was killed")

// change does a write, unless the process is over, and ends it if the write changed something. The
// caller never gets the result.
func (l *life) change(what string, obj client.Object, write func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return errKilled
	}
	version := obj.GetResourceVersion()
	if err := write(); err != nil {
		return err
	}
	if version != "" && obj.GetResourceVersion() == version && !strings.HasPrefix(what, "delete") {
		return nil
	}
	l.over = true
	l.did = append(l.did, what+" "+obj.GetName())
	close(l.ended)
	return errKilled
}

// mortal is a client whose writes end its life.
type mortal struct {
	some

	life *life
}

func (m *mortal) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return m.life.change("create", obj, func() error { return m.Client.Create(ctx, obj, opts...) })
}

func (m *mortal) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return m.life.change("update", obj, func() error { return m.Client.Update(ctx, obj, opts...) })
}

func (m *mortal) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return m.life.change("patch", obj, func() error { return m.Client.Patch(ctx, obj, patch, opts...) })
}

func (m *mortal) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return m.life.change("delete", obj, func() error { return m.Client.Delete(ctx, obj, opts...) })
}

func (m *mortal) Status() client.SubResourceWriter { return m.SubResource("status") }

func (m *mortal) SubResource(name string) client.SubResourceClient {
	return &mortalSub{m.Client.SubResource(name), m.life, name}
}

type mortalSub struct {
	client.SubResourceClient

	life *life
	name string
}

func (m *mortalSub) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return m.life.change("update "+m.name, obj, func() error { return m.SubResourceClient.Update(ctx, obj, opts...) })
}

func (m *mortalSub) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return m.life.change("patch "+m.name, obj, func() error { return m.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}
