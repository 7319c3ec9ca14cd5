package inject

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/membership"
	"waybill.dev/waybill/webhooks/registration"
)

// Path is the path of the webhook server that the Injector answers at.
const Path = "/inject"

const (
	// planEvery is the minimum time between two plans, so that many changes become one write of the
	// webhook configuration. It is well under the second within which changes of Applications must
	// be followed.
	planEvery = 400 * time.Millisecond

	// settle is for how long after a kind came or went discovery is asked again: API servers
	// announce a CRD before discovery knows its kind.
	settle = 5 * time.Second

	// firstRetry and lastRetry bound the wait before a plan is made again because discovery did not
	// answer, or may not be up to date yet. The wait doubles from the one to the other.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// Injector answers for objects of the kinds that Applications list, and knows which those are.
type Injector struct {
	systemNamespace string
	cache           cache.Cache
	applications    *applications
	kinds           *kinds                  // belongs to the loop alone
	moved           keyed.Map[string, bool] // groups in which a kind came or went
	wake            chan struct{}
	planned         func() // called after each plan that differs from the one before

	// plan is nil until there is one.
	plan atomic.Pointer[[]registration.Injection]
}

// CacheObjects returns how the cache of the manager must keep the objects that define kinds: by
// name alone.
func CacheObjects() map[client.Object]cache.ByObject {
	objects := map[client.Object]cache.ByObject{}
	for _, gvk := range kindSources {
		objects[partial(gvk)] = cache.ByObject{Transform: nameOnly}
	}
	return objects
}

// Setup adds an Injector to a manager whose cache keeps CacheObjects and uses Trim. It registers
// the Injector at Path of the webhook server, and adds a readiness check that all Applications are
// read. systemNamespace is the namespace that Waybill itself runs in: nothing is registered there.
func Setup(mgr manager.Manager, systemNamespace string) (*Injector, error) {
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	i := &Injector{
		systemNamespace: systemNamespace, cache: mgr.GetCache(), kinds: newKinds(kinds),
		wake: make(chan struct{}, 1), planned: func() {},
	}
	i.applications = &applications{changed: i.request}
	mgr.GetWebhookServer().Register(Path, &admission.Webhook{Handler: &handler{applications: i.applications}})
	if err := mgr.Add(i); err != nil {
		return nil, fmt.Errorf("add injector: %w", err)
	}
	return i, mgr.AddReadyzCheck("applications", i.ready)
}

// Index returns the index of the Applications of the cluster that are read so far.
func (i *Injector) Index() *membership.Index { return &i.applications.index }

// Injections returns what is to be registered, and whether that is known yet: it is not before all
// Applications are read. The result belongs to the Injector: do not modify it.
func (i *Injector) Injections() (injections []registration.Injection, known bool) {
	if planned := i.plan.Load(); planned != nil {
		return *planned, true
	}
	return nil, false
}

// OnChange sets the function that is called whenever Injections changes. It must be called before
// the manager starts.
func (i *Injector) OnChange(changed func()) { i.planned = changed }

// NeedLeaderElection returns false: every process answers.
func (*Injector) NeedLeaderElection() bool { return false }

// Start runs until the context ends.
func (i *Injector) Start(ctx context.Context) error {
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithName("inject"))
	err := watchKinds(ctx, i.cache, func(group string) { i.moved.Put(group, true); i.request() })
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return i.applications.fill(ctx, i.cache) })
	work.Go(func() error { i.loop(ctx); return nil })
	if err := work.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (i *Injector) ready(*http.Request) error {
	if !i.applications.synced.Load() {
		return errors.New("applications are not read yet")
	}
	return nil
}

// request asks the loop for a plan; requests that are still pending are merged into one.
func (i *Injector) request() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// loop makes a plan whenever it is asked to, but not too often, and again while a plan may be
// wrong.
func (i *Injector) loop(ctx context.Context) {
	log := ctrl.LoggerFrom(ctx)
	recent := map[string]bool{} // groups that discovery may not be up to date on yet
	settled := time.Now().Add(settle)
	retry := firstRetry
	again := time.NewTimer(lastRetry)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.wake:
			retry = firstRetry
		case <-again.C:
			i.kinds.forget(recent)
		}
		if moved := i.moved.Take(); len(moved) > 0 {
			settled = time.Now().Add(settle)
			maps.Copy(recent, moved)
			i.kinds.forget(recent)
		}
		err := i.replan()
		switch {
		case err != nil:
			log.Error(err, "rules for injection may be incomplete", "retryAfter", retry.String())
			again.Reset(retry)
		case time.Now().Before(settled):
			again.Reset(retry)
		default:
			clear(recent)
			again.Stop()
		}
		retry = min(2*retry, lastRetry)
		select {
		case <-ctx.Done():
		case <-time.After(planEvery):
		}
	}
}

// replan makes a plan, once all Applications are read.
func (i *Injector) replan() (err error) {
	if !i.applications.synced.Load() {
		return nil
	}
	next := plan(i.applications.index.Listed(), i.kinds.resolver(&err), i.systemNamespace)
	if before := i.plan.Swap(&next); before == nil || !reflect.DeepEqual(*before, next) {
		measure(next)
		i.planned()
	}
	return err
}

func measure(plan []registration.Injection) {
	resources, namespaces := 0, 0
	for _, p := range plan {
		resources += len(p.Resources)
		if p.Every {
			namespaces = -1
		} else {
			namespaces += len(p.Namespaces)
		}
	}
	entries.WithLabelValues("entries").Set(float64(len(plan)))
	entries.WithLabelValues("resources").Set(float64(resources))
	entries.WithLabelValues("namespaces").Set(float64(namespaces))
}
