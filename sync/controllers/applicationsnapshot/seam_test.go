package applicationsnapshot_test

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/hook"
)

// write is one that the controllers are about to make. phase is what it says of an ApplicationSnapshot; empty if it says
// nothing of that.
type write struct {
	object   client.Object
	phase    v1alpha1.SnapshotPhase
	carryOut func() error
}

// seam is where tests come between the controllers and the API server, each in its own namespace. It is shared by all
// processes of this package.
type seam struct {
	sync.Mutex
	handlers map[string]func(context.Context, write) error
	// refusals has, by namespace, what says why a command is not run; nil if it is.
	refusals map[string]func(command []string) error
}

var between = seam{handlers: map[string]func(context.Context, write) error{}, refusals: map[string]func([]string) error{}}

// refuse has a function say why a command in the namespace of a test is not run.
func (w *world) refuse(why func(command []string) error) {
	w.T.Helper()
	between.Lock()
	defer between.Unlock()
	between.refusals[w.Namespace] = why
	w.T.Cleanup(w.letBe)
}

// handle has a function carry out the writes in the namespace of a test, until the latter ends.
func (w *world) handle(writes func(context.Context, write) error) {
	w.T.Helper()
	between.Lock()
	defer between.Unlock()
	between.handlers[w.Namespace] = writes
	w.T.Cleanup(w.letBe)
}

// letBe has the writes carried out as they are.
func (w *world) letBe() {
	between.Lock()
	defer between.Unlock()
	delete(between.handlers, w.Namespace)
	delete(between.refusals, w.Namespace)
}

func (s *seam) write(ctx context.Context, o client.Object, p client.Patch, carryOut func() error) error {
	s.Lock()
	handler := s.handlers[o.GetNamespace()]
	s.Unlock()
	if handler == nil {
		return carryOut()
	}
	made := write{object: o, carryOut: carryOut}
	if _, ok := o.(*v1alpha1.ApplicationSnapshot); ok && p != nil {
		change := &v1alpha1.ApplicationSnapshot{}
		if data, err := p.Data(o); err == nil && json.Unmarshal(data, change) == nil {
			made.phase = change.Status.Phase
		}
	}
	return handler(ctx, made)
}

// seamRunner runs the commands of the controllers.
type seamRunner struct{ *hook.Runner }

func (r seamRunner) Run(ctx context.Context, t hook.Target, command []string, timeout time.Duration) (hook.Result, error) {
	between.Lock()
	refusal := between.refusals[t.Namespace]
	between.Unlock()
	if refusal != nil {
		if err := refusal(command); err != nil {
			return hook.Result{}, err
		}
	}
	return r.Runner.Run(ctx, t, command, timeout)
}

// seamClient is the client of the controllers.
type seamClient struct{ client.Client }

func (c seamClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return between.write(ctx, o, nil, func() error { return c.Client.Create(ctx, o, opts...) })
}

func (c seamClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return between.write(ctx, o, p, func() error { return c.Client.Patch(ctx, o, p, opts...) })
}

func (c seamClient) Status() client.SubResourceWriter { return seamStatus{c.Client.Status()} }

type seamStatus struct{ client.SubResourceWriter }

func (s seamStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return between.write(ctx, o, p, func() error { return s.SubResourceWriter.Patch(ctx, o, p, opts...) })
}
