package diff

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// requests is how many objects of one cluster are read at a time.
const requests = 8

// delivery is a set of objects that would be applied to one cluster.
type delivery struct {
	cluster *fleet.Cluster

	// manager is the field manager of the apply.
	manager string

	// owner delivers the objects, so that those of others are left alone; nil if existing ones are
	// overwritten.
	owner *apply.Owner

	// byHand says that a user at a terminal applies the objects, as before.
	byHand bool

	// acting: the cluster is asked with the identity of the delivery, so that what is forbidden is
	// refused. standIn: it is asked with the identity of the user instead, so that what the user may
	// not do says nothing.
	acting, standIn bool

	// namespace is used for objects that name none.
	namespace string

	// inventory is what was delivered before, and prune says whether objects that are gone from the
	// source are deleted.
	inventory []manifest.ID
	prune     bool
	// unread has the problems of what could not be read.
	unread []manifest.Problem
	// ignored are the fields that are left as others set them.
	ignored *ignore.Rules
	// adopt takes over what nothing else manages, and force recreates what cannot be changed.
	adopt, force bool

	// holds has the objects that an ApplicationRollback holds, and as is what annotates the objects that
	// are delivered.
	holds []v1alpha1.Hold
	as    types.UID

	// provided is what is applied before the objects, or with them. predict adds its objects.
	provided provided
}

// predict asks the API server what would happen to the objects, and to those in the inventory that
// are not among them.
func (d delivery) predict(ctx context.Context, objects []manifest.Object) ([]change, error) {
	d.provided = d.provided.with(objects)
	wanted := make([]manifest.ID, len(objects))
	changes := make([]change, len(objects))
	var group errgroup.Group
	group.SetLimit(requests)
	for i, object := range objects {
		group.Go(func() (err error) {
			changes[i], err = d.predictOne(ctx, object)
			wanted[i] = changes[i].id
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if !d.prune {
		return changes, nil
	}
	removals, err := d.predictRemovals(ctx, inventory.Diff(d.inventory, wanted))
	d.hold(changes, removals)
	return append(changes, removals...), err
}

func (d delivery) predictOne(ctx context.Context, object manifest.Object) (change, error) {
	c := change{cluster: d.cluster.Name(), id: object.ID()}
	api, err := d.cluster.Client()
	if err != nil {
		return c, err
	}
	wanted, invalid := prepare(object.Unstructured)
	namespaced, err := api.IsObjectNamespaced(wanted)
	if meta.IsNoMatchError(err) {
		if d.provided.kinds[wanted.GroupVersionKind().GroupKind()] {
			c.after = wanted
			return c, nil
		}
		c.note, c.refused = "the cluster does not offer this kind, and nothing that would be applied defines it", true
		c.waits = true
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("find resource of %s: %w", c.id, d.cluster.Explain(err))
	}
	switch {
	case !namespaced:
		wanted.SetNamespace("")
	case wanted.GetNamespace() == "":
		wanted.SetNamespace(d.namespace)
	}
	c.id.Namespace = wanted.GetNamespace()
	if invalid != nil {
		c.note, c.refused = "cannot be applied: "+invalid.Error(), true
		return c, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	switch err := api.Get(ctx, client.ObjectKeyFromObject(wanted), live); {
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err) && d.acting:
		c.note, c.refused = err.Error(), true
		return c, nil
	case apierrors.IsForbidden(err) && d.standIn:
		c.omitted = err
		return c, nil
	case err != nil:
		return c, fmt.Errorf("get %s: %w", c.id, d.cluster.Explain(err))
	default:
		c.before = live
	}
	if c.note = d.foreign(c.before, wanted, c.id); c.note != "" {
		c.after, c.refused = c.before, true
		return c, nil
	}
	if why := d.heldBy(object, c.before, c.id); why != "" {
		c.keep(why)
		return c, nil
	}
	err = d.dryRun(ctx, api, &c, wanted)
	return c, err
}

// dryRun writes an object without persisting the result. It is an error if the API server does not
// answer: so it refuses nothing.
func (d delivery) dryRun(ctx context.Context, api client.Client, c *change, wanted *unstructured.Unstructured) error {
	after, err := d.withoutIgnored(wanted, c.before)
	if err != nil {
		return fmt.Errorf("compare %s: %w", c.id, err)
	}
	if last := lastApplied(c.before); d.byHand && last != nil {
		after, err = patchByHand(ctx, api, last, c.before, wanted)
	} else {
		err = api.Apply(ctx, client.ApplyConfigurationFromUnstructured(after), client.DryRunAll, client.ForceOwnership, client.FieldOwner(d.managerOf(c.before)))
	}
	var unanswered *url.Error
	switch {
	case errors.As(err, &unanswered):
		return fmt.Errorf("try out %s: %w", c.id, d.cluster.Explain(err))
	case err == nil:
		c.after = after
	case apierrors.IsNotFound(err) && d.provided.namespaces[wanted.GetNamespace()]:
		c.after = wanted // its namespace does not exist yet
	case d.standIn && isOwnRight(err):
		c.omitted = err
	case d.owns(c.before) && apply.Recreates(c.before, wanted, d.force, err):
		c.after, c.recreated = wanted, true
	default:
		c.after, c.note, c.refused = wanted, err.Error(), true
		c.waits = apierrors.IsNotFound(err)
	}
	return ctx.Err()
}

// withoutIgnored returns what is applied over a live object: of the ignored fields, what it has.
func (d delivery) withoutIgnored(wanted, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	applied := wanted.DeepCopy()
	if live == nil {
		return applied, nil
	}
	var err error
	applied.Object, _, err = d.ignored.Of(wanted, wanted.GetNamespace()).ToApply(applied.Object, live, d.managerOf(live))
	return applied, err
}

// preview predicts what the owner may write, and deletes.
func (d delivery) preview() apply.Preview {
	return apply.Preview{Owner: *d.owner, Adopt: d.adopt, Inventory: d.inventory, Unread: d.unread}
}

// foreign returns whose object it is if the owner may not write it; empty if it may.
func (d delivery) foreign(live, wanted *unstructured.Unstructured, id manifest.ID) string {
	if d.owner == nil {
		return ""
	}
	return d.preview().Refusal(live, wanted, id)
}

// owns reports whether a live object carries the mark of the owner of the delivery.
func (d delivery) owns(live *unstructured.Unstructured) bool {
	return d.owner != nil && d.preview().Owns(live)
}
