package applicationdefinition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
)

var definitions = v1alpha1.GroupVersion.WithResource("applicationdefinitions")

// parallel is how many copies a lane writes at a time.
const parallel = 4

// errForeign means that a definition in a user cluster is not ours.
var errForeign = errors.New("an ApplicationDefinition of that name already exists in the cluster and is not a copy from this hub: delete it there, or rename this one")

// errOwn is errForeign in a seed, where what was there can become the copy.
var errOwn = fmt.Errorf("%w; to take it over, annotate this one with %s: \"true\"", errForeign, v1alpha1.AdoptAnnotation)

// errContested means that a copy is changed again and again right after it was corrected.
var errContested = errors.New("another field manager keeps changing the copy; corrections back off; see its metadata.managedFields in the cluster")

// lane maintains the copies in one cluster. All requests to the cluster are made in its goroutine
// and those that it starts, so that no other cluster waits for it.
type lane struct {
	r       *Reconciler
	cluster *cluster.Cluster
	copies  metadata.Getter
	wake    chan struct{} // holds one

	watched bool // used by run only

	mu    sync.Mutex
	ready bool // what the cluster has is known
	due   map[string]bool
	busy  map[string]bool
	known map[string]verified
	ends  map[string]end
}

// end is the result of the last look at a copy.
type end struct {
	// held is true if the cluster has the copy, as it should be.
	held bool
	// err is why the cluster does not have it; nil if it should not.
	err error
	// retry is when to try again; zero if an event triggers that.
	retry reconcile.Retry
}

func newLane(r *Reconciler, c *cluster.Cluster) *lane {
	return &lane{
		r: r, cluster: c, copies: c.Metadata().Resource(definitions),
		wake: make(chan struct{}, 1),
		due:  map[string]bool{}, busy: map[string]bool{}, known: map[string]verified{}, ends: map[string]end{},
	}
}

// look makes the lane look at the copies of definitions.
func (l *lane) look(names ...string) {
	l.mu.Lock()
	for _, name := range names {
		l.due[name] = true
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// lookAtAll makes the lane look at every copy that it ever looked at.
func (l *lane) lookAtAll() {
	l.mu.Lock()
	var names []string
	for name := range l.known {
		names = append(names, name)
	}
	for name := range l.ends {
		names = append(names, name)
	}
	l.mu.Unlock()
	l.look(names...)
}

// lookAgain makes the lane look at the copies that failed because the cluster was lost.
func (l *lane) lookAgain() {
	l.mu.Lock()
	var names []string
	for name, e := range l.ends {
		if e.err != nil && !answered(e.err) {
			names = append(names, name)
		}
	}
	l.mu.Unlock()
	l.look(names...)
}

// end returns the result of the last look at a copy, or false if the lane has not looked yet.
func (l *lane) end(name string) (end, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ready || l.due[name] || l.busy[name] {
		return end{}, false
	}
	return l.ends[name], true
}

// learned reports whether the copies in the cluster are known.
func (l *lane) learned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}

// run maintains the copies until ctx ends.
func (l *lane) run(ctx context.Context) {
	if !l.begin(ctx) {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-timer.C:
		}
		names := l.take()
		group := errgroup.Group{}
		group.SetLimit(parallel)
		for _, name := range names {
			group.Go(func() error {
				l.done(name, l.keep(ctx, name))
				return nil
			})
		}
		_ = group.Wait() // keep records its errors in the ends of the copies
		timer.Reset(l.nextRetry())
	}
}

// take returns the copies to look at, and marks them as being looked at.
func (l *lane) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for name, e := range l.ends {
		if e.retry.Due(now) {
			l.due[name] = true
		}
	}
	names := make([]string, 0, len(l.due))
	for name := range l.due {
		names = append(names, name)
		l.busy[name] = true
	}
	clear(l.due)
	return names
}

// done records the result of a look at a copy, and wakes the definition.
func (l *lane) done(name string, e end) {
	l.mu.Lock()
	delete(l.busy, name)
	if e.err != nil && e.retry.At.IsZero() && !unreachable(e.err) && !errors.Is(e.err, errForeign) {
		e.retry.Failures = l.ends[name].retry.Failures
		e.retry.Failed(l.r.kernel.Backoff)
	}
	l.ends[name] = e
	if !e.held && e.err == nil && e.retry.At.IsZero() {
		delete(l.ends, name)
	}
	l.mu.Unlock()
	l.r.gather.add(name)
}

func (l *lane) nextRetry() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := time.Now().Add(maxBackoff)
	for _, e := range l.ends {
		if !e.retry.At.IsZero() && e.retry.At.Before(next) {
			next = e.retry.At
		}
	}
	return max(time.Until(next), 0)
}

// unreachable reports whether the cluster is lost. An event follows when it is back.
func unreachable(err error) bool {
	return errors.Is(err, cluster.ErrUnreachable) || errors.Is(err, cluster.ErrNotEngaged)
}

// answered reports whether the cluster itself refused a copy.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) || errors.Is(err, errForeign) || errors.Is(err, errContested)
}

// keep brings one copy to its desired state.
func (l *lane) keep(ctx context.Context, name string) end {
	offered, skip, err := l.r.offeredTo(ctx, name, l.cluster.Name())
	if skip || err != nil {
		return end{err: err}
	}
	live, err := l.live(ctx, name)
	if err != nil {
		return end{err: err}
	}
	last := l.last(name)
	switch decide(offered, live, last, l.r.HubID) {
	case create:
		err = l.apply(ctx, name, offered, false)
	case put:
		if again := last.contested(offered); !again.IsZero() {
			return end{err: errContested, retry: reconcile.Retry{At: again}}
		}
		if err = l.apply(ctx, name, offered, true); err == nil && offered.going {
			return end{retry: reconcile.Retry{At: time.Now()}} // what is left to do is to delete it
		}
	case drop:
		return end{err: l.delete(ctx, live)}
	case yield:
		if err = errForeign; offered.inSeed {
			err = errOwn
		}
	case await:
		// The event of our own write wakes the lane; if it does not come, the retry does.
		return end{held: offered != nil && !offered.going && last.hash == offered.hash, retry: reconcile.Retry{At: time.Now().Add(trust)}}
	case nothing:
	}
	return end{held: offered != nil && !offered.going && err == nil, err: err}
}

// begin calls learn until it succeeds. It returns false if ctx has ended.
func (l *lane) begin(ctx context.Context) bool {
	for failures := 1; ; failures++ {
		names, err := l.learn(ctx)
		if err == nil {
			l.mu.Lock()
			l.ready = true
			l.mu.Unlock()
			l.look(names...)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		ctrl.Log.WithName("applicationdefinition").Error(err, "read copies, will try again", "cluster", l.cluster.Name())
		select {
		case <-ctx.Done():
			return false
		case <-time.After(l.r.kernel.Backoff(failures)):
		}
	}
}

// learn starts the watch on the copies, reads the existing ones in full, once, and returns the
// names of all definitions on the hub and in the cluster.
func (l *lane) learn(ctx context.Context) ([]string, error) {
	if err := l.watch(ctx); err != nil {
		return nil, fmt.Errorf("watch copies: %w", err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind + "List"))
	if err := l.cluster.Cache().List(ctx, list); err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	names, err := l.r.names(ctx)
	if err != nil {
		return nil, err
	}
	held := false
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
		held = held || list.Items[i].Annotations[v1alpha1.CopyOfAnnotation] == l.r.HubID
	}
	if held {
		err = l.verify(ctx)
	}
	return names, err
}
