// Package complete offers kinds and names for shell completion.
package complete

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
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

// Names completes the first argument of a command: the name of an object of a kind.
func Names(env *cli.Env, kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return namesOf(cmd.Context(), env, kind), cobra.ShellCompDirectiveNoFileComp
	}
}

// Flag completes the value of a flag: the name of an object of a kind, of a Namespace if that is empty.
func Flag(cmd *cobra.Command, env *cli.Env, flag, kind string) {
	// This fails only for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return namesOf(cmd.Context(), env, kind), cobra.ShellCompDirectiveNoFileComp
	})
}

// namesOf returns the names of the objects of a kind that the command line means; none if they cannot be
// listed in time.
func namesOf(ctx context.Context, env *cli.Env, kind string) []string {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if kind == "" {
		target, err := env.Target(ctx)
		if err != nil {
			return nil
		}
		return names(ctx, target, corev1.SchemeGroupVersion.WithKind("Namespace"))
	}
	set, list, err := offers(ctx, env)
	if err != nil {
		return nil
	}
	return list(set, kind)
}

// Flags completes the values of the flags that all commands have.
func Flags(root *cobra.Command, env *cli.Env) {
	for flag, kind := range map[string]schema.GroupVersionKind{
		"cluster":          v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesClusterKind),
		"namespace":        corev1.SchemeGroupVersion.WithKind("Namespace"),
		"system-namespace": corev1.SchemeGroupVersion.WithKind("Namespace"),
	} {
		// This fails only for flags that do not exist.
		_ = root.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			ctx, cancel := context.WithTimeout(cmd.Context(), within)
			defer cancel()
			at := env.Hub
			if flag == "namespace" {
				at = func() (*fleet.Cluster, error) { return env.Target(ctx) }
			}
			cluster, err := at()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names(ctx, cluster, kind), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// names returns the names of the objects of a kind in these namespaces, or in all; none if they cannot
// be listed.
func names(ctx context.Context, cluster *fleet.Cluster, kind schema.GroupVersionKind, in ...client.ListOption) []string {
	c, err := cluster.Client()
	if err != nil {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := c.List(ctx, list, in...); err != nil {
		return nil
	}
	var found []string
	for _, item := range list.Items {
		found = append(found, item.Name)
	}
	return found
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
	namespace, _, err := env.Namespace()
	if err != nil {
		return nil, nil, err
	}
	return set, func(set kinds.Set, word string) []string {
		kind, err := set.Find(word)
		if err != nil {
			return nil
		}
		var in client.InNamespace
		if kind.Namespaced {
			in = client.InNamespace(namespace)
		}
		return names(ctx, target, kind.GroupVersionKind(), in)
	}, nil
}

func prefixed(prefix string, names []string) []string {
	for i, name := range names {
		names[i] = prefix + name
	}
	return names
}
