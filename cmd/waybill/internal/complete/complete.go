// Package complete offers kinds and names for shell completion.
package complete

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/waybill/internal/cli"
	"waybill.dev/waybill/cmd/waybill/internal/kinds"
)

// within is the time limit of a completion; a cluster that does not answer by then offers none.
const within = 3 * time.Second

// References completes `KIND NAME...` and `KIND/NAME...`. If no kinds are given, it completes every
// kind that the cluster offers.
func References(env *cli.Env, only ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), within)
		defer cancel()
		set, names, err := offers(ctx, env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(only) > 0 {
			set = set.Only(only...)
		}
		if word, _, found := strings.Cut(typed, "/"); found {
			return prefixed(word+"/", names(set, word)), cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) > 0 && !strings.Contains(args[0], "/") {
			return names(set, args[0]), cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, k := range set {
			words = append(words, k.Singular)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// offers returns the kinds of the target, and a function that lists the names of the objects of
// one.
func offers(ctx context.Context, env *cli.Env) (kinds.Set, func(kinds.Set, string) []string, error) {
	target, err := env.Target(ctx)
	if err != nil {
		return nil, nil, err
	}
	set, err := kinds.Discover(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	c, err := target.Client()
	if err != nil {
		return nil, nil, err
	}
	namespace, _, err := env.Namespace()
	if err != nil {
		return nil, nil, err
	}
	return set, func(set kinds.Set, word string) []string {
		kind, err := set.Find(word)
		if err != nil {
			return nil
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersionKind())
		var in client.InNamespace
		if kind.Namespaced {
			in = client.InNamespace(namespace)
		}
		if err := c.List(ctx, list, in); err != nil {
			return nil
		}
		var names []string
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		return names
	}, nil
}

func prefixed(prefix string, names []string) []string {
	for i, name := range names {
		names[i] = prefix + name
	}
	return names
}
