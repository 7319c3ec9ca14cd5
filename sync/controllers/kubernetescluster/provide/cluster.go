package provide

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/cluster/workers"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/reconcile"
)

// minBackoff and maxBackoff bound the delay after a look that failed as a whole, which doubles.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// all is the one key of a cluster: everything that it is to be provided with is reconciled together.
type all struct{}

// provided is a cluster that is provided for. Its pool has one worker, which works on all there is.
type provided struct {
	p       *Provider
	cluster *cluster.Cluster
	*workers.Pool[all, *Report]

	// shortened is what was written last of the annotation: the cache may be behind.
	shortened shortening
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
	drift   map[string]*reconcile.DriftConflict

	attempts keyed.Map[string, attempt]
	going    atomic.Bool // the cluster is to be removed
}

// attempt is what was tried last, and failed.
type attempt struct {
	input string
	err   error
	retry reconcile.Retry
	// asked is when the last look began in which it was asked for.
	asked time.Time
}

// scope is what the steps of one pass share.
type scope struct {
	// kc is from a cache, and must not be changed.
	kc *v1alpha1.KubernetesCluster
	// began is when the pass began.
	began  time.Time
	report *Report
}

func newProvided(p *Provider, of *cluster.Cluster) *provided {
	c := &provided{
		p: p, cluster: of,
		made: map[string]types.UID{}, marked: map[string]types.UID{}, written: map[string]written{}, drift: map[string]*reconcile.DriftConflict{},
	}
	c.Pool = workers.New(of, workers.Options[all, *Report]{
		Name: "provide", MinBackoff: minBackoff, MaxBackoff: maxBackoff,
		Learn:   func(ctx context.Context) (map[all]*Report, error) { return map[all]*Report{{}: nil}, c.watch(ctx) },
		Work:    func(ctx context.Context, _ all) (*Report, error) { return c.work(ctx) },
		Changed: func(all) { p.Wake(of.Name()) },
	})
	return c
}

func (c *provided) look() { c.Add(all{}) }

func (c *provided) withdraw() {
	if c.going.CompareAndSwap(false, true) {
		c.look()
	}
}

// last returns what was found last; nil if nothing was yet.
func (c *provided) last() *Report { return c.Result(all{}).Value }

func (c *provided) watch(ctx context.Context) error {
	_, registration, err := watch.Handle(ctx, c.cluster.Cache(), &v1alpha1.ApplicationInstallation{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { c.changed(o.(client.Object)) },
		UpdateFunc: func(was, is any) {
			if was.(client.Object).GetGeneration() != is.(client.Object).GetGeneration() || !apiequality.Semantic.DeepEqual(was.(client.Object).GetLabels(), is.(client.Object).GetLabels()) {
				c.changed(is.(client.Object))
			}
		},
		DeleteFunc: func(o any) {
			if watch.Deleted(o) != nil {
				c.look() // what was asked for may have waited for that
			}
		},
	})
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// changed enqueues the cluster when an installation changes that may have to be corrected, or was just created.
func (c *provided) changed(o client.Object) {
	if o.GetNamespace() == c.p.SystemNamespace || c.waits(o.GetNamespace()+"/"+o.GetName()) {
		c.look()
	}
}

func (c *provided) waits(name string) bool {
	_, waits := c.attempts.Lookup(requestKey(name))
	return waits
}

// work brings the cluster to what is wanted, and says when it has to be reconciled again.
func (c *provided) work(ctx context.Context) (*Report, error) {
	kc := &v1alpha1.KubernetesCluster{}
	err := c.p.Hub.Get(ctx, c.cluster.Name(), kc, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return c.last(), nil
	}
	if err != nil {
		return c.last(), err
	}
	s := &scope{kc: kc, began: time.Now(), report: &Report{}}
	switch {
	case !kc.DeletionTimestamp.IsZero():
		return c.last(), c.leave(ctx, s)
	case c.cluster.Reachable() != nil:
		return c.last(), nil // it is back with an event
	}
	if err := c.p.Usable(c.cluster.Name()); err != nil {
		s.report.Waiting = err.Error()
		return s.report, nil
	}
	if s.report.Held = agentPending(kc); s.report.Held == "" {
		c.request(ctx, s)
	}
	s.report.Asked = c.asked
	if err := c.provide(ctx, s); err != nil {
		if ctx.Err() == nil {
			ctrl.Log.WithName("provide").Error(err, "look at what the cluster is provided with, will try again", "cluster", c.cluster.Name())
		}
		return c.last(), err
	}
	c.next(s)
	return s.report, nil
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

// try calls f unless it failed for the same input a moment ago. The error of then stands until it is due again.
func (c *provided) try(s *scope, key, input string, f func() error) error {
	a := c.attempts.Get(key)
	if a.input != input {
		a = attempt{input: input}
	}
	a.asked = s.began
	c.attempts.Put(key, a)
	if a.err != nil && !a.retry.Due(s.began) {
		return a.err
	}
	err := f()
	switch a.err = err; {
	case err == nil:
		c.attempts.Drop(key)
		return nil
	case errors.Is(err, cluster.ErrUnreachable), errors.Is(err, cluster.ErrNotEngaged):
		a.err = nil // an event says when it is back
	default:
		a.retry.Failed(c.p.Backoff)
	}
	c.attempts.Put(key, a)
	return err
}

// next forgets what is not asked for any more, and enqueues the cluster for when something is due.
func (c *provided) next(s *scope) {
	c.attempts.DropFunc(func(_ string, a attempt) bool { return !a.asked.Equal(s.began) })
	var due []time.Time
	for _, a := range c.attempts.All() {
		due = append(due, a.retry.At)
	}
	for _, conflict := range c.drift {
		due = append(due, conflict.Due())
	}
	if after := reconcile.UntilNext(s.began, due...); after > 0 {
		c.AddAfter(all{}, after)
	}
}
