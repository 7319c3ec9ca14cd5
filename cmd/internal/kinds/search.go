package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// Search looks objects up by their names: in the namespace of the command line, else in all. Users who
// may not list all namespaces find objects in the namespace of the kubeconfig.
type Search struct {
	// Forbidden are the kinds that could not be listed.
	Forbidden []string

	target    *fleet.Cluster
	client    client.Client
	namespace string
	explicit  bool // whether the command line names the namespace
}

// NewSearch returns a search in a cluster.
func NewSearch(env *cli.Env, target *fleet.Cluster) (*Search, error) {
	namespace, explicit, err := env.Namespace()
	if err != nil {
		return nil, err
	}
	c, err := target.Client()
	if err != nil {
		return nil, err
	}
	return &Search{target: target, client: c, namespace: namespace, explicit: explicit}, nil
}

// Named returns the objects of a kind that have a name. If the kind may not be listed, there are none,
// and Forbidden names the kind.
func (s *Search) Named(ctx context.Context, kind Kind, name string) ([]unstructured.Unstructured, error) {
	options := []client.ListOption{client.MatchingFields{"metadata.name": name}}
	within := append(slices.Clone(options), client.InNamespace(s.namespace))
	if s.explicit && kind.Namespaced {
		options = within
	}
	found, err := s.list(ctx, kind, options...)
	if apierrors.IsForbidden(err) && kind.Namespaced && !s.explicit {
		found, err = s.list(ctx, kind, within...)
	}
	if apierrors.IsForbidden(err) {
		s.Forbidden = append(s.Forbidden, kind.Resource)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s among %s: %w", name, kind.Resource, s.target.Explain(err))
	}
	return found, nil
}

func (s *Search) list(ctx context.Context, kind Kind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersionKind())
	err := s.client.List(ctx, list, options...)
	return list.Items, err
}

// locate returns an object of a kind by its name, with its namespace. Without a namespace on the command
// line, the object in the namespace of the kubeconfig comes first, as in kubectl; if there is none, the
// only one of that name is meant, in whatever namespace it is. An object that may not be looked for is
// in the namespace of the kubeconfig.
func (s *Search) locate(ctx context.Context, kind Kind, name string) (*unstructured.Unstructured, error) {
	object := kind.object(s.namespace, name)
	if !kind.Namespaced || s.explicit {
		return object, nil
	}
	err := s.client.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
	if err == nil {
		return object, nil
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("get %s: %w", Describe(object), s.target.Explain(err))
	}
	found, failed := s.Named(ctx, kind, name)
	switch {
	case failed != nil:
		return nil, failed
	case len(found) > 1:
		return nil, Ambiguous(name, found)
	case len(found) == 1:
		return kind.object(found[0].GetNamespace(), name), nil
	case apierrors.IsForbidden(err):
		return object, nil // the next request for it says which right is missing
	case len(s.Forbidden) > 0:
		return nil, fmt.Errorf("get %s: %w; you may not list %s of all namespaces: name the namespace with -n", Describe(object), err, kind.Resource)
	}
	return nil, fmt.Errorf("no %s is called %s, in any namespace of cluster %s", kind.Kind, name, s.target.Name())
}

// object returns an object of the kind by its name. The namespace is for namespaced kinds.
func (k Kind) object(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(k.GroupVersionKind())
	object.SetName(name)
	if k.Namespaced {
		object.SetNamespace(namespace)
	}
	return object
}

// Ambiguous returns the error for a name that several objects have, and lists them.
func Ambiguous(name string, candidates []unstructured.Unstructured) error {
	candidates = slices.Clone(candidates)
	slices.SortStableFunc(candidates, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetNamespace(), b.GetNamespace()))
	})
	var named []string
	wayOut := "choose one with -n"
	for i := range candidates {
		named = append(named, Describe(&candidates[i]))
		if candidates[i].GetKind() != candidates[0].GetKind() {
			wayOut = "write KIND/" + name + ", and name the namespace with -n"
		}
	}
	return fmt.Errorf("%s is the name of %d objects, %s: %s", name, len(candidates), strings.Join(named, ", "), wayOut)
}

// Find is like Resolve, and takes a NAME alone as well, which is looked for among these kinds, or all
// that are offered, in all namespaces unless the command line names one. It is an error if several
// objects have it.
func Find(ctx context.Context, env *cli.Env, target *fleet.Cluster, args []string, among ...string) ([]*unstructured.Unstructured, error) {
	set, err := offered(ctx, target)
	if err != nil {
		return nil, err
	}
	if len(among) == 0 {
		among = set.names()
	}
	if len(args) != 1 || strings.Contains(args[0], "/") || set.knows(args[0]) {
		return set.resolve(ctx, env, target, args)
	}
	s, err := NewSearch(env, target)
	if err != nil {
		return nil, err
	}
	var found []unstructured.Unstructured
	for _, kind := range set.Only(among...) {
		named, err := s.Named(ctx, kind, args[0])
		if err != nil {
			return nil, err
		}
		found = append(found, named...)
	}
	switch len(found) {
	case 0:
		return nil, s.Nothing(args[0], among)
	case 1:
		return []*unstructured.Unstructured{&found[0]}, nil
	}
	return nil, Ambiguous(args[0], found)
}

// Nothing returns the error for a name that no object of these kinds has.
func (s *Search) Nothing(name string, among []string) error {
	message := fmt.Sprintf("no object of the kinds %s is called %s", strings.Join(among, ", "), name)
	if len(s.Forbidden) > 0 {
		message += ", as far as you may see: you may not list " + strings.Join(s.Forbidden, ", ")
	}
	return errors.New(message)
}

// One returns the object that the arguments name, in full.
func One(ctx context.Context, env *cli.Env, target *fleet.Cluster, args []string) (*unstructured.Unstructured, error) {
	if len(args) > 1 && strings.Contains(args[0], "/") {
		return nil, fmt.Errorf("name one object instead of %d", len(args))
	}
	objects, err := Find(ctx, env, target, args)
	if err != nil {
		return nil, err
	}
	c, err := target.Client()
	if err != nil {
		return nil, err
	}
	object := objects[0]
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, fmt.Errorf("get %s: %w", Describe(object), target.Explain(err))
	}
	return object, nil
}
