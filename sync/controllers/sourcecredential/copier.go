package sourcecredential

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/workers"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	// parallel is how many Secrets are copied at a time to one API server.
	parallel = 4
	// all is a key that stands for no Secret, which have names: when it is worked on, it is found out what
	// should be copied, and the Secrets of which something else should be than was copied last are added.
	all = ""
)

// errRefused means that not every copy could be written. Why is in the result of the Secret.
var errRefused = errors.New("not every copy could be written")

// copier keeps the copies in one API server.
type copier struct {
	r       *Reconciler
	cluster *cluster.Cluster
	// seed is the KubernetesCluster of a seed; it is empty for the hub itself.
	seed    types.NamespacedName
	applier *apply.Applier
	// Pool has what was copied of each Secret, by its name.
	*workers.Pool[string, copied]

	// plan is what should be copied, by the name of the Secret; nil as long as that is not known.
	plan atomic.Pointer[map[string]*wanted]
}

func newCopier(ctx context.Context, r *Reconciler, c *cluster.Cluster, seed types.NamespacedName) *copier {
	made := &copier{r: r, cluster: c, seed: seed}
	made.Pool = workers.New(c, workers.Options[string, copied]{
		Name: "sourcecredential", Workers: parallel, MinBackoff: minBackoff, MaxBackoff: maxBackoff,
		Learn: made.learn, Work: made.work, Changed: func(string) { made.wakeClusters() },
	})
	// Others have changed a copy, or what a copy waits for is there.
	made.applier = apply.New(ctx, c, apply.Options{Notify: func(owner apply.Owner) { made.Add(owner.Name) }})
	return made
}

// isHub reports whether these are the copies in the hub itself.
func (c *copier) isHub() bool { return c.seed == types.NamespacedName{} }

// again has everything compared with what there should be, and what failed tried again at once.
func (c *copier) again() {
	c.Retry()
	c.Add(all)
}

// learn lists the copies that this hub has made: in a seed those in the system namespace, and on the hub
// those in all others. Those of Secrets that were deleted while this process, or the seed, was away are found
// that way. They are listed in one response, which is bounded: a seed could go on with pages for ever.
func (c *copier) learn(ctx context.Context) (map[string]copied, error) {
	namespace := c.r.SystemNamespace
	if c.isHub() {
		namespace = metav1.NamespaceAll
	}
	resource := c.cluster.Metadata().Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	list, err := resource.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.CopyOfLabel + "=" + c.r.HubID})
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	found := map[string]copied{all: {}}
	for i := range list.Items {
		o := &list.Items[i]
		owner, ok := apply.OwnerOf(o)
		if ok && owner == c.r.owner(o.Name) && o.Namespace != "" && (o.Namespace == c.r.SystemNamespace) != c.isHub() {
			found[o.Name] = copied{inventory: append(found[o.Name].inventory, copyID(o.Namespace, o.Name))}
		}
	}
	return found, nil
}

// leaving reports whether the KubernetesCluster of the seed is being deleted: its controller also
// deletes the copies.
func (c *copier) leaving(ctx context.Context) (bool, error) {
	if c.isHub() {
		return false, nil
	}
	kc := &v1alpha1.KubernetesCluster{}
	err := c.r.Client.Get(ctx, c.seed, kc, client.UnsafeDisableDeepCopy)
	return err != nil || !kc.DeletionTimestamp.IsZero(), client.IgnoreNotFound(err)
}

// survey finds out what should be copied.
func (c *copier) survey(ctx context.Context) (copied, error) {
	plan, err := c.r.wanted(ctx, c)
	if err != nil {
		return copied{}, fmt.Errorf("find out which source credentials are to be copied: %w", err)
	}
	c.plan.Store(&plan)
	known := c.Results()
	delete(known, all)
	for name := range plan {
		known[name] = c.Result(name)
	}
	for name, last := range known {
		if last.Value.attempted != plan[name].digest() {
			c.Add(name)
		}
	}
	return copied{attempted: "surveyed"}, nil
}

// settled reports whether the copies of a Secret are as they were written last.
func (c *copier) settled(name string) bool {
	seen, known := c.applier.Observe(c.r.owner(name))
	return known && seen.Settled
}

// work brings the copies of one Secret to what they should be.
func (c *copier) work(ctx context.Context, name string) (copied, error) {
	last := c.Result(name).Value
	if leaving, err := c.leaving(ctx); err != nil || leaving {
		return last, err
	}
	if name == all {
		return c.survey(ctx)
	}
	plan := c.plan.Load()
	if plan == nil {
		return last, nil // the survey adds it
	}
	wanted, pause := (*plan)[name], time.Until(last.drift.Due())
	switch {
	case wanted == nil && last.attempted == "" && len(last.inventory) == 0:
		return copied{}, nil // it is none that was ever copied
	case last.attempted != wanted.digest():
		last.drift = reconcile.DriftConflict{}
	case !last.failed() && !last.result.Unseen && c.settled(name):
		return last, nil
	case pause > 0:
		return last, reconcile.Waiting(v1alpha1.CopyFailedReason, pause, "another field manager keeps changing a copy; corrections back off")
	}
	got := c.deliver(ctx, name, last, wanted)
	switch {
	case got.result.Err != nil:
		return got, got.result.Err
	case got.refused():
		return got, errRefused
	case got.failed():
		return got, reconcile.Waiting(v1alpha1.CopyFailedReason, 0, "%w", errRefused)
	case got.result.Unseen:
		c.AddAfter(name, maxBackoff)
	case wanted == nil && len(got.inventory) == 0:
		c.applier.Forget(c.r.owner(name))
		return copied{}, nil
	}
	return got, nil
}
