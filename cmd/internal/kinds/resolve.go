package kinds

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// Resolve turns arguments into objects that have a kind, a name and a namespace: that of the command
// line, else that of the kubeconfig if the object is there, else the only one in which it is. An object
// whose namespace the command line names is not looked up.
func Resolve(ctx context.Context, env *cli.Env, target *fleet.Cluster, args []string) ([]*unstructured.Unstructured, error) {
	set, err := offered(ctx, target)
	if err != nil {
		return nil, err
	}
	return set.resolve(ctx, env, target, args)
}

// offered returns the kinds of a cluster that has any of ours.
func offered(ctx context.Context, target *fleet.Cluster) (Set, error) {
	set, err := Discover(ctx, target)
	if err == nil && len(set) == 0 {
		err = ErrNotInstalled(target)
	}
	return set, err
}

// knows reports whether a word means a kind.
func (s Set) knows(word string) bool {
	_, err := s.Find(word)
	return err == nil
}

func (s Set) resolve(ctx context.Context, env *cli.Env, target *fleet.Cluster, args []string) ([]*unstructured.Unstructured, error) {
	refs, err := s.Parse(args)
	if err != nil {
		return nil, err
	}
	search, err := NewSearch(env, target)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(refs))
	for i, ref := range refs {
		if ref.Name == "" {
			return nil, fmt.Errorf("which %s? name one: %s/NAME", ref.Kind.Singular, ref.Kind.Singular)
		}
		if objects[i], err = search.locate(ctx, ref.Kind, ref.Name); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// Describe returns an object as arguments name it, with its namespace.
func Describe(object *unstructured.Unstructured) string {
	name := fmt.Sprintf("%s/%s", object.GetKind(), object.GetName())
	if ns := object.GetNamespace(); ns != "" {
		return name + " in " + ns
	}
	return name
}
