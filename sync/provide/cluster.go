package provide

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/watch"
)

// lane provides for one cluster. All requests to the cluster are made by its goroutine and those that it
// starts, so that no other cluster waits for it.
type lane struct {
	p       *Provider
	cluster *cluster.Cluster
	wake    chan struct{} // holds one

	// taken is what was recorded, or is to be, of the list in the ConfigMap: the cache may be behind.
	taken *v1alpha1.TakenInstallations
	// asked is true once something that was asked for was created, or tried.
	asked bool
	// made has the UID of each definition of which default has made an installation: the record may be behind.
	made map[string]types.UID
	// marked has the UID of each installation in the system namespace that was seen with our mark, by name.
	marked map[string]types.UID
	// written has what was written of each definition that is enforced.
	written map[string]written
	fights  map[string]*reconcile.Fight

	mu       sync.Mutex
	attempts map[string]*attempt
	report   *Report
	going    bool // the cluster is to be let go
}

// attempt is what was tried last, and failed.
type attempt struct {
	input string
	err   error
	retry reconcile.Retry
	// used marks what was asked for since the pass began.
	used bool
}

// scope is what the steps of one pass share.
type scope struct {
	// kc is from a cache, and must not be changed.
	kc *v1alpha1.KubernetesCluster
	// began is when the pass began.
	began  time.Time
	report *Report
}

func newLane(p *Provider, c *cluster.Cluster) *lane {
	return &lane{
		p: p, cluster: c, wake: make(chan struct{}, 1),
		made: map[string]types.UID{}, marked: map[string]types.UID{}, written: map[string]written{}, fights: map[string]*reconcile.Fight{},
		attempts: map[string]*attempt{},
	}
}

func (l *lane) look() {
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

func (l *lane) withdraw() {
	l.mu.Lock()
	begun := !l.going
	l.going = true
	l.mu.Unlock()
	if begun {
		l.look()
	}
}

func (l *lane) last() *Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report
}

// run provides for the cluster until ctx ends.
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
		next, err := l.pass(ctx)
		if err != nil && ctx.Err() == nil {
			ctrl.Log.WithName("provide").Error(err, "look at what the cluster is provided with, will try again", "cluster", l.cluster.Name())
			next = l.p.Backoff(1)
		}
		timer.Stop()
		if next > 0 {
			timer.Reset(next)
		}
	}
}

// begin watches the installations of the cluster, and returns once they are known; false if ctx has ended.
func (l *lane) begin(ctx context.Context) bool {
	for failures := 1; ctx.Err() == nil; failures++ {
		err := l.watch(ctx)
		if err == nil {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(l.p.Backoff(failures)):
		}
	}
	return false
}

func (l *lane) watch(ctx context.Context) error {
	informer, err := l.cluster.Cache().GetInformer(ctx, &v1alpha1.ApplicationInstallation{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch installations: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { l.changed(o.(client.Object)) },
		UpdateFunc: func(was, is any) {
			if was.(client.Object).GetGeneration() != is.(client.Object).GetGeneration() || !apiequality.Semantic.DeepEqual(was.(client.Object).GetLabels(), is.(client.Object).GetLabels()) {
				l.changed(is.(client.Object))
			}
		},
		DeleteFunc: func(o any) {
			if watch.Deleted(o) != nil {
				l.look() // what was asked for may have waited for that
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch installations: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = informer.RemoveEventHandler(registration) }) // fails only where the informer has ended
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// changed looks when an installation changes that may have to be put right, or was just created.
func (l *lane) changed(o client.Object) {
	if o.GetNamespace() == l.p.SystemNamespace || l.waits(o.GetNamespace()+"/"+o.GetName()) {
		l.look()
	}
}

func (l *lane) waits(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempts[requestKey(name)] != nil
}

// pass brings the cluster to what is wanted, and returns the time until it has to look again; zero for none.
func (l *lane) pass(ctx context.Context) (time.Duration, error) {
	kc := &v1alpha1.KubernetesCluster{}
	err := l.p.Hub.Get(ctx, l.cluster.Name(), kc, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	s := &scope{kc: kc, began: time.Now(), report: &Report{}}
	switch {
	case !kc.DeletionTimestamp.IsZero():
		return l.leave(ctx, s)
	case l.cluster.Reachable() != nil:
		return 0, nil // it is back with an event
	}
	if err := l.p.Usable(l.cluster.Name()); err != nil {
		s.report.Waiting = err.Error()
		l.tell(s.report)
		return 0, nil
	}
	if s.report.Held = agentPending(kc); s.report.Held == "" {
		l.request(ctx, s)
	}
	s.report.Asked = l.asked
	if err := l.provide(ctx, s); err != nil {
		return 0, err
	}
	l.tell(s.report)
	return l.next(s), nil
}

// agentPending returns what is waited for where the hub installs Waybill's own share of the cluster: admission
// there is to check what is created first. Empty if nothing is.
func agentPending(kc *v1alpha1.KubernetesCluster) string {
	agent := conditions.Get(kc, v1alpha1.AgentReadyCondition)
	switch {
	case agent == nil && kc.Spec.Agent == nil:
		return ""
	case agent != nil && (agent.Status == metav1.ConditionTrue || agent.Reason == v1alpha1.AgentNotInstalledReason):
		return ""
	}
	return "the condition " + v1alpha1.AgentReadyCondition + " is not True yet"
}

// tell keeps the report, and wakes the KubernetesCluster if it says something new.
func (l *lane) tell(report *Report) {
	l.mu.Lock()
	same := l.report != nil && apiequality.Semantic.DeepEqual(l.report, report)
	l.report = report
	l.mu.Unlock()
	if !same {
		l.p.Wake(l.cluster.Name())
	}
}

// try calls f unless it failed for the same input a moment ago. The error of then stands until it is due again.
func (l *lane) try(s *scope, key, input string, f func() error) error {
	l.mu.Lock()
	a := l.attempts[key]
	if a == nil || a.input != input {
		a = &attempt{input: input}
		l.attempts[key] = a
	}
	a.used = true
	wait := a.err != nil && !a.retry.Due(s.began)
	l.mu.Unlock()
	if wait {
		return a.err
	}
	err := f()
	l.mu.Lock()
	defer l.mu.Unlock()
	a.err = err
	switch {
	case err == nil:
		delete(l.attempts, key)
	case errors.Is(err, cluster.ErrUnreachable), errors.Is(err, cluster.ErrNotEngaged):
		a.err = nil // an event says when it is back
	default:
		a.retry.Failed(l.p.Backoff)
	}
	return err
}

// next forgets what is not asked for any more, and returns the time until something is due.
func (l *lane) next(s *scope) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var due []time.Time
	for key, a := range l.attempts {
		if !a.used {
			delete(l.attempts, key)
			continue
		}
		a.used = false
		due = append(due, a.retry.At)
	}
	for _, f := range l.fights {
		due = append(due, f.Due())
	}
	return reconcile.UntilNext(s.began, due...)
}
