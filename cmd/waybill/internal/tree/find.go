package tree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/waybill/internal/cli"
	"waybill.dev/waybill/cmd/waybill/internal/fleet"
	"waybill.dev/waybill/cmd/waybill/internal/kinds"
)

// rootKinds are the kinds that a tree can start at, in the order in which a name is looked up.
var rootKinds = []string{
	v1alpha1.GitSyncKind, v1alpha1.ApplicationDefinitionKind, v1alpha1.KubernetesClusterKind,
	v1alpha1.KubernetesApplicationKind, v1alpha1.KubernetesApplicationResourceKind,
	v1alpha1.ApplicationInstallationKind, v1alpha1.ApplicationKind,
}

// find returns the object that the arguments name.
func find(ctx context.Context, env *cli.Env, target *fleet.Cluster, args []string) (*unstructured.Unstructured, error) {
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		return findByName(ctx, env, target, args[0])
	}
	objects, err := kinds.Resolve(ctx, env, target, args)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("name one object: the tree of %d is a forest", len(objects))
	}
	c, err := target.Client()
	if err != nil {
		return nil, err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(objects[0]), objects[0]); err != nil {
		return nil, fmt.Errorf("get %s: %w", kinds.Describe(objects[0]), err)
	}
	return objects[0], nil
}

// findByName looks up a name among the root kinds. The first kind that has it wins; it is an error
// if that kind has several such objects.
func findByName(ctx context.Context, env *cli.Env, target *fleet.Cluster, name string) (*unstructured.Unstructured, error) {
	set, err := kinds.Discover(ctx, target)
	if err != nil {
		return nil, err
	}
	if len(set) == 0 {
		return nil, kinds.ErrNotInstalled(target)
	}
	namespace, explicit, err := env.Namespace()
	if err != nil {
		return nil, err
	}
	s := search{target: target, name: name, namespace: namespace, explicit: explicit}
	for _, word := range rootKinds {
		kind, err := set.Find(word)
		if err != nil {
			continue // not offered here
		}
		object, err := s.among(ctx, kind)
		if err != nil || object != nil {
			return object, err
		}
	}
	if kind, err := set.Find(name); err == nil {
		return nil, fmt.Errorf("which %s? name one: %s/NAME", kind.Singular, kind.Singular)
	}
	if len(s.forbidden) > 0 {
		return nil, fmt.Errorf("no object of the kinds %s is called %s, as far as you may see: you may not list %s",
			strings.Join(rootKinds, ", "), name, strings.Join(s.forbidden, ", "))
	}
	return nil, fmt.Errorf("no object of the kinds %s is called %s", strings.Join(rootKinds, ", "), name)
}

// search describes how a name is looked up.
type search struct {
	target    *fleet.Cluster
	name      string
	namespace string
	explicit  bool     // whether the command line names the namespace
	forbidden []string // kinds that could not be listed
}

// among returns the object of a kind; nil if there is none. Users who may not list all namespaces
// find objects in the namespace of the kubeconfig (A40).
func (s *search) among(ctx context.Context, kind kinds.Kind) (*unstructured.Unstructured, error) {
	options := []client.ListOption{client.MatchingFields{"metadata.name": s.name}}
	within := append(slices.Clone(options), client.InNamespace(s.namespace))
	if s.explicit && kind.Namespaced {
		options = within
	}
	found, err := s.list(ctx, kind, options...)
	if apierrors.IsForbidden(err) && kind.Namespaced && !s.explicit {
		found, err = s.list(ctx, kind, within...)
	}
	if apierrors.IsForbidden(err) {
		s.forbidden = append(s.forbidden, kind.Resource)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s among %s: %w", s.name, kind.Resource, s.target.Explain(err))
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("%s %s is in several namespaces, %s and %s among them: choose one with -n",
			kind.Kind, s.name, found[0].GetNamespace(), found[1].GetNamespace())
	}
	if len(found) == 1 {
		return &found[0], nil
	}
	return nil, nil
}

func (s *search) list(ctx context.Context, kind kinds.Kind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	c, err := s.target.Client()
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersionKind())
	err = c.List(ctx, list, options...)
	return list.Items, err
}
