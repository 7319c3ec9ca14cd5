package adopt

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/output"
)

// requests is how many kinds are listed, and how many objects are annotated, at a time.
const requests = 16

// candidate is an object that the selector matches.
type candidate struct {
	fleet.Resource

	object metav1.PartialObjectMetadata
}

// String returns the object as commands write it.
func (c candidate) String() string { return c.Resource.String() + "/" + c.object.Name }

// search describes which objects to look for.
type search struct {
	cluster   *fleet.Cluster
	namespace string
	selector  labels.Selector
	kinds     []fleet.Resource
	named     bool // whether the kinds were named rather than found
}

// run lists the metadata of the objects that the selector matches, all kinds concurrently. It also
// returns the kinds that may not be listed.
func (s search) run(ctx context.Context) (found []candidate, forbidden []string, err error) {
	lists := make([][]candidate, len(s.kinds))
	denied := make([]bool, len(s.kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(requests)
	for i, kind := range s.kinds {
		group.Go(func() (err error) {
			lists[i], err = s.list(ctx, kind)
			if denied[i] = apierrors.IsForbidden(err); denied[i] || !s.named && fleet.NotListable(err) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for i, kind := range s.kinds {
		if denied[i] {
			forbidden = append(forbidden, kind.String())
		}
	}
	return slices.Concat(lists...), forbidden, nil
}

func (s search) list(ctx context.Context, kind fleet.Resource) ([]candidate, error) {
	objects, err := s.cluster.ListMetadata(ctx, kind.GroupVersionResource(), s.namespace, s.selector.String())
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	found := make([]candidate, len(objects))
	for i, object := range objects {
		found[i] = candidate{Resource: kind, object: object}
	}
	return found, nil
}

// decide decides what to do with the objects that the selector matches. It is an error if there is
// nothing to adopt.
func (o *options) decide(ctx context.Context, target *fleet.Cluster, r rules) ([]decision, error) {
	s, err := o.search(target)
	if err != nil {
		return nil, err
	}
	found, forbidden, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	if len(forbidden) > 0 && (r.named || len(forbidden) == len(s.kinds)) {
		return nil, fmt.Errorf("you may not list %s in namespace %s", output.Enumerate(forbidden, "kind"), s.namespace)
	}
	if len(forbidden) > 0 {
		o.env.Warnf("kinds that you may not list are left out: %s", output.Enumerate(forbidden, "kind"))
	}
	decisions := make([]decision, len(found))
	counts := map[action]int{}
	for i, c := range found {
		v := r.decide(c)
		decisions[i] = v
		counts[v.action]++
		if v.action == leaveOut {
			o.env.Warnf("%s is left out: %s", c, v.reason)
		}
	}
	if len(found) == counts[leaveOut]+counts[controlled] {
		also := ""
		if n := counts[controlled]; n > 0 {
			also = fmt.Sprintf(", and %s that others control", output.Count(n, "object"))
		}
		return nil, fmt.Errorf("nothing to adopt: of %s in namespace %s, the selector %s matches no object that could be a component%s",
			output.Count(len(s.kinds)-len(forbidden), "kind"), s.namespace, o.selector, also)
	}
	return decisions, nil
}

// search returns what to look for: the kinds on the command line, or all usual ones.
func (o *options) search(target *fleet.Cluster) (search, error) {
	s := search{cluster: target, named: len(o.kinds) > 0}
	all, incomplete, err := target.Resources()
	if err != nil {
		return s, err
	}
	if incomplete != nil {
		o.env.Warnf("%s", incomplete)
	}
	if s.namespace, _, err = o.env.Namespace(); err != nil {
		return s, err
	}
	if s.selector, err = labels.Parse(o.selector); err != nil {
		return s, fmt.Errorf("read --selector: %w", err)
	}
	s.kinds = usual(all)
	if s.named {
		s.kinds, err = o.named(all)
	}
	return s, err
}

// named returns the kinds that the command line names, each once.
func (o *options) named(all []fleet.Resource) ([]fleet.Resource, error) {
	var kinds []fleet.Resource
	for _, word := range o.kinds {
		kind, err := find(all, word)
		if err == nil {
			err = adoptable(kind)
		}
		if err != nil {
			return nil, fmt.Errorf("--kind: %w", err)
		}
		if !slices.ContainsFunc(kinds, func(k fleet.Resource) bool { return k.GroupVersionKind == kind.GroupVersionKind }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}
