package tree

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
)

// rootKinds are the kinds that a tree can start at, in the order in which a name is looked up.
var rootKinds = []string{
	v1alpha1.GitSyncKind, v1alpha1.ApplicationDefinitionKind, v1alpha1.KubernetesClusterKind,
	v1alpha1.KubernetesApplicationKind, v1alpha1.KubernetesApplicationResourceKind,
	v1alpha1.ApplicationInstallationKind, v1alpha1.ApplicationKind, v1alpha1.StatefulApplicationKind,
}

// find returns the object that the arguments name.
func find(ctx context.Context, env *cli.Env, target *fleet.Cluster, args []string) (*unstructured.Unstructured, error) {
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		return findByName(ctx, env, target, args[0])
	}
	if len(args) > 1 && strings.Contains(args[0], "/") {
		return nil, fmt.Errorf("name one object: the tree of %d is a forest", len(args))
	}
	return kinds.One(ctx, env, target, args)
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
	s, err := kinds.NewSearch(env, target)
	if err != nil {
		return nil, err
	}
	for _, word := range rootKinds {
		kind, err := set.Find(word)
		if err != nil {
			continue // not offered here
		}
		found, err := s.Named(ctx, kind, name)
		switch {
		case err != nil:
			return nil, err
		case len(found) > 1:
			return nil, kinds.Ambiguous(name, found)
		case len(found) == 1:
			return &found[0], nil
		}
	}
	if kind, err := set.Find(name); err == nil {
		return nil, fmt.Errorf("which %s? name one: %s/NAME", kind.Singular, kind.Singular)
	}
	return nil, s.Nothing(name, rootKinds)
}
