package applicationdefinition

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/workers"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/reconcile"
)

var definitions = v1alpha1.GroupVersion.WithResource("applicationdefinitions")

// parallel is how many copies are written at a time in one cluster.
const parallel = 4

// errForeign means that a definition in a user cluster is not ours. The watch shows when it is gone.
var errForeign = reconcile.Stalled(v1alpha1.CopyFailedReason, "an ApplicationDefinition of that name already exists in the cluster and is not a copy from this hub: delete it there, or rename this one")

// errOwn is errForeign in a seed, where what was there can become the copy.
var errOwn = fmt.Errorf("%w; to take it over, annotate this one with %s: \"true\"", errForeign, v1alpha1.AdoptAnnotation)

// errContested means that a copy is changed again and again right after it was corrected.
var errContested = errors.New("another field manager keeps changing the copy; corrections back off; see its metadata.managedFields in the cluster")

// copier maintains the copies in one cluster.
type copier struct {
	r       *Reconciler
	cluster *cluster.Cluster
	copies  metadata.Getter
	*workers.Pool[string, progress]

	watched bool // used by learn only
	// known are the copies as they were written or read, by name.
	known keyed.Map[string, verified]
}

// progress is what has come of the copy of a definition. It is zero if there should be none.
type progress struct {
	// of is the hash of what the cluster gets.
	of string
	// held is true if the cluster has the copy, as it should be.
	held bool
}

func newCopier(r *Reconciler, c *cluster.Cluster) *copier {
	made := &copier{r: r, cluster: c, copies: c.Metadata().Resource(definitions)}
	made.Pool = workers.New(c, workers.Options[string, progress]{
		Name: "applicationdefinition", Workers: parallel, MinBackoff: minBackoff, MaxBackoff: maxBackoff,
		Learn: made.learn, Work: made.keep, Changed: r.wakeSoon,
	})
	return made
}

// addAll enqueues every copy that should be or is there. names are those of all definitions.
func (c *copier) addAll(names []string) {
	c.Add(append(names, c.known.Keys()...)...)
}

// answered reports whether the cluster itself refused a copy.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) || errors.Is(err, errForeign) || errors.Is(err, errContested)
}

// keep brings one copy to its desired state.
func (c *copier) keep(ctx context.Context, name string) (got progress, err error) {
	offered, skip, err := c.r.offeredTo(ctx, name, c.cluster.Name())
	if skip || err != nil {
		return got, err
	}
	wanted := offered != nil && !offered.going
	if wanted {
		got.of = offered.hash
	}
	live, err := c.live(ctx, name)
	if err != nil {
		return got, err
	}
	last := c.known.Get(name)
	switch decide(offered, live, last, c.r.HubID) {
	case create:
		err = c.apply(ctx, name, offered, false)
	case put:
		if pause := last.pause(offered); pause > 0 {
			return got, reconcile.Waiting(v1alpha1.CopyFailedReason, pause, "%w", errContested)
		}
		if err = c.apply(ctx, name, offered, true); err == nil && offered.going {
			c.Add(name) // what is left to do is to delete it
		}
	case report:
		err = c.report(ctx, live, offered)
	case drop:
		return got, c.delete(ctx, live)
	case yield:
		if err = errForeign; offered.inSeed {
			err = errOwn
		}
	case await:
		// The event of our own write adds it; if that does not come, it is reconciled all the same.
		c.AddAfter(name, trust)
		got.held = wanted && last.hash == offered.hash
		return got, nil
	case nothing:
	}
	got.held = wanted && err == nil
	return got, err
}

// learn starts the watch on the copies, reads the existing ones in full, once, and returns the names of
// all definitions on the hub and in the cluster.
func (c *copier) learn(ctx context.Context) (map[string]progress, error) {
	if err := c.watch(ctx); err != nil {
		return nil, fmt.Errorf("watch copies: %w", err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind + "List"))
	if err := c.cluster.Cache().List(ctx, list); err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	names, err := c.r.names(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]progress{}
	for _, name := range names {
		known[name] = progress{}
	}
	held := false
	for i := range list.Items {
		known[list.Items[i].Name] = progress{}
		held = held || list.Items[i].Annotations[v1alpha1.CopyOfAnnotation] == c.r.HubID
	}
	if held {
		err = c.verify(ctx)
	}
	return known, err
}
