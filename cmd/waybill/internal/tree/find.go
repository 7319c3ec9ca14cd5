package tree

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/waybill/internal/cli"
	"waybill.dev/waybill/cmd/waybill/internal/fleet"
	"waybill.dev/waybill/cmd/waybill/internal/kinds"
)

// rootKinds are the kinds that a tree begins at, in the order in which a name is looked for.
var rootKinds = []string{
	v1alpha1.GitSyncKind, v1alpha1.ApplicationDefinitionKind, v1alpha1.KubernetesClusterKind,
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

// findByName looks for a name among the root kinds. The first kind that has it counts; of
// several objects of that kind none does.
func findByName(ctx context.Context, env *cli.Env, target *fleet.Cluster, name string) (*unstructured.Unstructured, error) {
	set, err := kinds.Discover(ctx, target)
	if err != nil {
		return nil, err
	}
	if len(set) == 0 {
		return nil, kinds.ErrNotInstalled(target)
	}
	c, err := target.Client()
	if err != nil {
		return nil, err
	}
	namespace, explicit, err := env.Namespace()
	if err != nil {
		return nil, err
	}
	for _, word := range rootKinds {
		kind, err := set.Find(word)
		if err != nil {
			continue // not offered here
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersionKind())
		options := []client.ListOption{client.MatchingFields{"metadata.name": name}}
		if explicit && kind.Namespaced {
			options = append(options, client.InNamespace(namespace))
		}
		if err := c.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("look for %s among %s: %w", name, kind.Resource, err)
		}
		if len(list.Items) > 1 {
			return nil, fmt.Errorf("%s %s is in several namespaces, %s and %s among them: choose one with -n",
				kind.Kind, name, list.Items[0].GetNamespace(), list.Items[1].GetNamespace())
		}
		if len(list.Items) == 1 {
			return &list.Items[0], nil
		}
	}
	return nil, fmt.Errorf("no object of the kinds %s is called %s", strings.Join(rootKinds, ", "), name)
}
