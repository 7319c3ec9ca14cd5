package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// Kind is one of our kinds, as an API server offers it.
type Kind struct {
	// Kind in singular, e.g. GitSync.
	Kind string
	// Singular and Resource name the kind in commands and in URLs, e.g. gitsync, gitsyncs.
	Singular, Resource string
	// Short are the short names of the kind, separated by commas, so that kinds can be compared.
	Short string
	// Namespaced is true if objects of the kind are in namespaces.
	Namespaced bool
}

// GroupVersionKind returns the type of the kind's objects.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return v1alpha1.GroupVersion.WithKind(k.Kind)
}

// Set holds all of our kinds that one API server offers, in the order in which people read them:
// sources first, what runs last.
type Set []Kind

// order lists the kinds that users read first; others follow by name.
var order = []string{
	v1alpha1.GitSyncKind, v1alpha1.KubernetesClusterKind, v1alpha1.ApplicationDefinitionKind,
	v1alpha1.KubernetesApplicationKind, v1alpha1.KubernetesApplicationResourceKind,
	v1alpha1.ApplicationInstallationKind, v1alpha1.ApplicationKind,
	v1alpha1.StatefulApplicationKind, v1alpha1.ApplicationSnapshotKind, v1alpha1.ApplicationRollbackKind,
}

// aliases are shorter words for kinds with long names. `app` is not among them: others use it.
var aliases = map[string]string{
	"sync": v1alpha1.GitSyncKind, "syncs": v1alpha1.GitSyncKind,
	"cluster": v1alpha1.KubernetesClusterKind, "clusters": v1alpha1.KubernetesClusterKind,
	"definition": v1alpha1.ApplicationDefinitionKind, "definitions": v1alpha1.ApplicationDefinitionKind,
	"installation": v1alpha1.ApplicationInstallationKind, "installations": v1alpha1.ApplicationInstallationKind,
	"snapshot": v1alpha1.ApplicationSnapshotKind, "snapshots": v1alpha1.ApplicationSnapshotKind,
	"snapshotclass": v1alpha1.ApplicationSnapshotClassKind, "snapshotclasses": v1alpha1.ApplicationSnapshotClassKind,
	"snapshotcontent": v1alpha1.ApplicationSnapshotContentKind, "snapshotcontents": v1alpha1.ApplicationSnapshotContentKind,
	"rollback": v1alpha1.ApplicationRollbackKind, "rollbacks": v1alpha1.ApplicationRollbackKind,
}

// Discover asks an API server for our kinds; the result is empty if it has none.
func Discover(ctx context.Context, cluster *fleet.Cluster) (Set, error) {
	config, httpClient, err := cluster.REST()
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	path := "/apis/" + v1alpha1.GroupVersion.String()
	raw, err := client.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, cluster.Explain(err)
	}
	list := &metav1.APIResourceList{}
	if err := json.Unmarshal(raw, list); err != nil {
		return nil, fmt.Errorf("ask for the kinds of %s: %w", v1alpha1.Group, err)
	}
	return fromResources(list.APIResources), nil
}

// ErrNotInstalled returns the error for an API server that has none of our kinds.
func ErrNotInstalled(cluster *fleet.Cluster) error {
	return fmt.Errorf("cluster %s offers no kinds of Waybill: install charts/waybill there, or choose another cluster with --context", cluster.Name())
}

func fromResources(resources []metav1.APIResource) Set {
	var set Set
	for _, r := range resources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Categories, v1alpha1.Category) {
			continue // a subresource, or not one of our kinds
		}
		set = append(set, Kind{Kind: r.Kind, Singular: r.SingularName, Resource: r.Name, Short: strings.Join(r.ShortNames, ","), Namespaced: r.Namespaced})
	}
	slices.SortFunc(set, func(a, b Kind) int {
		if d := rank(a.Kind) - rank(b.Kind); d != 0 {
			return d
		}
		return strings.Compare(a.Kind, b.Kind)
	})
	return set
}

func rank(kind string) int {
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}

// Find returns the kind that a word means: its kind, singular, plural or short name in any case, or an
// alias.
func (s Set) Find(word string) (Kind, error) {
	wanted := strings.ToLower(word)
	wanted, _ = strings.CutSuffix(wanted, "."+v1alpha1.Group)
	if kind, ok := aliases[wanted]; ok {
		wanted = strings.ToLower(kind)
	}
	for _, k := range s {
		short := slices.Contains(strings.Split(k.Short, ","), wanted) && wanted != ""
		if wanted == strings.ToLower(k.Kind) || wanted == k.Singular || wanted == k.Resource || short {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("%q is none of the kinds of Waybill here: %s", word, strings.Join(s.words(), ", "))
}

// words lists the names of the kinds in commands.
func (s Set) words() []string {
	words := make([]string, len(s))
	for i, k := range s {
		words[i] = k.Resource
	}
	return words
}

// names lists the kinds.
func (s Set) names() []string {
	names := make([]string, len(s))
	for i, k := range s {
		names[i] = k.Kind
	}
	return names
}

// Reference is one object, or all objects of a kind, as arguments name them.
type Reference struct {
	Kind Kind
	Name string // empty for all
}

// Parse reads `KIND`, `KIND NAME...`, `KIND/NAME...` and `KIND,KIND`.
func (s Set) Parse(args []string) ([]Reference, error) {
	if len(args) > 0 && strings.Contains(args[0], "/") {
		return s.parseSlashed(args)
	}
	var refs []Reference
	for i, arg := range args {
		if i == 0 {
			continue
		}
		kind, err := s.Find(args[0])
		if err != nil {
			return nil, err
		}
		refs = append(refs, Reference{Kind: kind, Name: arg})
	}
	if len(args) != 1 {
		return refs, nil
	}
	for word := range strings.SplitSeq(args[0], ",") {
		kind, err := s.Find(word)
		if err != nil {
			return nil, err
		}
		refs = append(refs, Reference{Kind: kind})
	}
	return refs, nil
}

func (s Set) parseSlashed(args []string) ([]Reference, error) {
	refs := make([]Reference, len(args))
	for i, arg := range args {
		word, name, found := strings.Cut(arg, "/")
		if !found || name == "" {
			return nil, fmt.Errorf("%q is not KIND/NAME: write all arguments as KIND/NAME, or as KIND and then names", arg)
		}
		kind, err := s.Find(word)
		if err != nil {
			return nil, err
		}
		refs[i] = Reference{Kind: kind, Name: name}
	}
	return refs, nil
}

// Only returns the kinds of the set that are named.
func (s Set) Only(names ...string) Set {
	var some Set
	for _, k := range s {
		if slices.Contains(names, k.Kind) {
			some = append(some, k)
		}
	}
	return some
}
