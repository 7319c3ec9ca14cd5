package sourcecredential

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/manifest"
)

// parallel is how many Secrets a lane copies at a time.
const parallel = 4

// lane keeps the copies in one API server. All requests to it are made in the lane's goroutine and those
// that it starts, so that no other cluster waits for it.
type lane struct {
	r       *Reconciler
	cluster *cluster.Cluster
	// seed is the KubernetesCluster of a seed; it is empty for the hub itself.
	seed    types.NamespacedName
	applier *apply.Applier
	bell    chan struct{} // holds one

	// credentials has what is known of each Secret that is copied, or was, by its name. It is used by run
	// only.
	credentials map[string]*credential

	mu sync.Mutex
	// told are those of which copies were changed by others.
	told map[string]bool
	// due are those to try again, whatever their back-off.
	due map[string]bool
	all bool // all of those that failed are due
	// report is what the last look has found; nil before it.
	report *report
}

func newLane(ctx context.Context, r *Reconciler, c *cluster.Cluster, seed types.NamespacedName) *lane {
	l := &lane{
		r: r, cluster: c, seed: seed, bell: make(chan struct{}, 1),
		credentials: map[string]*credential{}, told: map[string]bool{}, due: map[string]bool{},
	}
	l.applier = apply.New(ctx, c, apply.Options{Notify: l.notify})
	return l
}

// isHub reports whether this is the lane of the hub itself.
func (l *lane) isHub() bool { return l.seed == types.NamespacedName{} }

// look has the lane compare what there is with what there should be.
func (l *lane) look() {
	select {
	case l.bell <- struct{}{}:
	default: // it is awake
	}
}

// notify is called when others have changed a copy, or when what a copy waits for is there.
func (l *lane) notify(owner apply.Owner) {
	l.mu.Lock()
	l.told[owner.Name] = true
	l.mu.Unlock()
	l.look()
}

// retry has a Secret copied again at once if that failed.
func (l *lane) retry(name string) {
	l.mu.Lock()
	l.due[name] = true
	l.mu.Unlock()
	l.look()
}

// again has everything that failed tried again at once.
func (l *lane) again() {
	l.mu.Lock()
	l.all = true
	l.mu.Unlock()
	l.look()
}

// run keeps the copies until ctx ends.
func (l *lane) run(ctx context.Context) {
	if !l.begin(ctx) {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.bell:
		case <-timer.C:
		}
		next, err := l.keep(ctx)
		if err == nil {
			failures = 0
			timer.Reset(next)
			continue
		}
		failures++
		l.log(err, "find out which source credentials to copy, will try again")
		timer.Reset(l.r.kernel.Backoff(failures))
	}
}

func (l *lane) log(err error, message string) {
	if errors.Is(err, context.Canceled) {
		return
	}
	ctrl.Log.WithName("sourcecredential").Error(err, message, "cluster", l.seed)
}

// begin lists the copies until that succeeds: those of Secrets that were deleted while this process, or the
// seed, was away are found that way. It returns false if ctx has ended.
func (l *lane) begin(ctx context.Context) bool {
	for failures := 1; ; failures++ {
		err := l.learn(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		l.log(err, "list copies of source credentials, will try again")
		select {
		case <-ctx.Done():
			return false
		case <-l.bell:
		case <-time.After(l.r.kernel.Backoff(failures)):
		}
	}
}

// learn lists the copies that this hub has made: in a seed those in the system namespace, and on the hub
// those in all others. They are listed in one response, which is bounded: a seed could go on with pages for
// ever.
func (l *lane) learn(ctx context.Context) error {
	namespace := l.r.SystemNamespace
	if l.isHub() {
		namespace = metav1.NamespaceAll
	}
	resource := l.cluster.Metadata().Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	list, err := resource.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.CopyOfLabel + "=" + l.r.HubID})
	if err != nil {
		return fmt.Errorf("list copies: %w", err)
	}
	found := map[string][]manifest.ID{}
	for i := range list.Items {
		o := &list.Items[i]
		owner, ok := apply.OwnerOf(o)
		if ok && owner == l.r.owner(o.Name) && o.Namespace != "" && (o.Namespace == l.r.SystemNamespace) != l.isHub() {
			found[o.Name] = append(found[o.Name], copyID(o.Namespace, o.Name))
		}
	}
	for name, ids := range found {
		l.credentials[name] = &credential{inventory: ids}
	}
	return nil
}

// keep brings every copy to what it should be, and returns the time until something is to be tried again.
func (l *lane) keep(ctx context.Context) (time.Duration, error) {
	told, due, all := l.take()
	wanted, err := l.r.wanted(ctx, l)
	if errors.Is(err, errLeaving) {
		return maxBackoff, nil
	}
	if err != nil {
		return 0, err
	}
	for name := range wanted {
		if l.credentials[name] == nil {
			l.credentials[name] = &credential{}
		}
	}
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for name, c := range l.credentials {
		if all || due[name] {
			c.tryAgain()
		}
		if c.isDue(l, name, wanted[name], told[name]) {
			group.Go(func() error {
				c.deliver(ctx, l, name, wanted[name])
				return nil
			})
		}
	}
	_ = group.Wait() // deliver records its errors
	next := time.Now().Add(maxBackoff)
	for name, c := range l.credentials {
		if at := c.retry.At; !at.IsZero() && at.Before(next) {
			next = at
		}
		if wanted[name] == nil && len(c.inventory) == 0 {
			l.applier.Forget(l.r.owner(name))
			delete(l.credentials, name)
		}
	}
	l.tell(wanted)
	return max(time.Until(next), time.Millisecond), nil
}

// take returns what has become due since it was last called.
func (l *lane) take() (told, due map[string]bool, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	told, due, all = l.told, l.due, l.all
	l.told, l.due, l.all = map[string]bool{}, map[string]bool{}, false
	return told, due, all
}
