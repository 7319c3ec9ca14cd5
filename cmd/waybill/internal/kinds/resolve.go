package kinds

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/cmd/waybill/internal/cli"
	"waybill.dev/waybill/cmd/waybill/internal/fleet"
)

// Resolve turns arguments into objects that have a kind, a name and a namespace.
func Resolve(ctx context.Context, env *cli.Env, target *fleet.Cluster, args []string) ([]*unstructured.Unstructured, error) {
	set, err := Discover(ctx, target)
	if err != nil {
		return nil, err
	}
	if len(set) == 0 {
		return nil, ErrNotInstalled(target)
	}
	refs, err := set.Parse(args)
	if err != nil {
		return nil, err
	}
	namespace, _, err := env.Namespace()
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(refs))
	for i, ref := range refs {
		if ref.Name == "" {
			return nil, fmt.Errorf("which %s? name one: %s/NAME", ref.Kind.Singular, ref.Kind.Singular)
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(ref.Kind.GroupVersionKind())
		object.SetName(ref.Name)
		if ref.Kind.Namespaced {
			object.SetNamespace(namespace)
		}
		objects[i] = object
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
