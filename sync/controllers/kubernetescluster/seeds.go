package kubernetescluster

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/excerpt"
)

// What is accepted of the usage that a seed reports. The limit on versions is that of the API.
const (
	maxUses = 1000
	// maxUsers is how many installations are named of one version, as in the status of a definition.
	maxUsers = 20
	// maxUsersSize bounds the names of all installations together.
	maxUsersSize = 256 << 10
	// maxUserCount bounds what a seed may say of how many installations use one version.
	maxUserCount = 1 << 20
	// maxVersion is how long the name of a version is at most.
	maxVersion = 128
	// maxLacking is the limit of the API on the definitions that are provided, and maxProblem bounds what is
	// repeated of why one is not.
	maxLacking, maxProblem = 500, 256
)

var (
	// userName is the name of an installation: namespace and name of its cluster, its own namespace and name.
	userName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,252})(/[a-z0-9]([-a-z0-9.]{0,252})){3}$`)
	// clusterName is the namespace and the name of a KubernetesCluster.
	clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,252})/[a-z0-9]([-a-z0-9.]{0,252})$`)
	// objectName is what the API server calls a name, roughly.
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,252})$`)
	// versionText has no white space and nothing that a terminal would execute.
	versionText = regexp.MustCompile(`^[!-~]*$`)
)

// noWaybillError is why a seed is not ready in which Waybill is not installed.
type noWaybillError struct{ err error }

func (e *noWaybillError) Error() string {
	return "the API server does not serve ApplicationDefinitions: install Waybill in the seed (helm install charts/waybill)"
}

func (e *noWaybillError) Unwrap() error { return e.err }

// findWaybill returns an error if Waybill is not installed in a seed. The hub installs nothing there.
func findWaybill(ctx context.Context, c *cluster.Cluster) error {
	_, err := c.Metadata().Resource(definitions).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return &noWaybillError{err}
	}
	if err != nil {
		return fmt.Errorf("list ApplicationDefinitions: %w", err)
	}
	return nil
}

// summarizeSeed writes to the status which installations in the clusters of a seed use the definitions
// that it has copies of. While that is not known, the last summary stays.
func (r *Reconciler) summarizeSeed(ctx context.Context, s *scope) error {
	e := r.engagements.Get(s.key)
	if e == nil || !e.synced() {
		return nil
	}
	list := &v1alpha1.ApplicationDefinitionList{}
	if err := e.cluster.Client().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list copies of ApplicationDefinitions: %w", err)
	}
	originals := &v1alpha1.ApplicationDefinitionList{}
	if err := r.Client.List(ctx, originals, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ApplicationDefinitions: %w", err)
	}
	s.kc.Status.Installations = nil
	s.kc.Status.Usage, s.kc.Status.InstallationCount = usage(list.Items, r.HubID)
	s.kc.Status.Provided = lacking(list.Items, originals.Items, r.HubID)
	return nil
}

// lacking returns the definitions of a hub that some cluster of a seed lacks the installation of, sorted,
// with the first of these clusters, as far as what the copies say is accepted.
func lacking(copies, originals []v1alpha1.ApplicationDefinition, hubID string) []v1alpha1.ProvidedDefinition {
	uids := make(map[string]types.UID, len(originals))
	for i := range originals {
		uids[originals[i].Name] = originals[i].UID
	}
	var all []v1alpha1.ProvidedDefinition
	for i := range copies {
		one, uid := &copies[i], uids[copies[i].Name]
		where := slices.IndexFunc(one.Status.Unprovided, func(u v1alpha1.UnprovidedCluster) bool { return clusterName.MatchString(u.Cluster) })
		if one.Annotations[v1alpha1.CopyOfAnnotation] != hubID || uid == "" || where < 0 {
			continue
		}
		first := one.Status.Unprovided[where]
		problem := excerpt.Of(strings.Map(printable, first.Problem), maxProblem)
		all = append(all, v1alpha1.ProvidedDefinition{
			Name: one.Name, UID: uid, Problem: first.Cluster + ": " + problem + excerpt.AndMore(len(one.Status.Unprovided)-1),
		})
	}
	slices.SortFunc(all, func(a, b v1alpha1.ProvidedDefinition) int { return strings.Compare(a.Name, b.Name) })
	return all[:min(len(all), maxLacking)]
}

// printable drops what a terminal could execute.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return -1
}

// usage returns the installations that use the copies of a hub's definitions, sorted by definition and
// version, as far as it is accepted, and their number.
func usage(copies []v1alpha1.ApplicationDefinition, hubID string) (used []v1alpha1.DefinitionUsage, count int32) {
	sorted := make([]*v1alpha1.ApplicationDefinition, 0, len(copies))
	for i := range copies {
		if copies[i].Annotations[v1alpha1.CopyOfAnnotation] == hubID && objectName.MatchString(copies[i].Name) {
			sorted = append(sorted, &copies[i])
		}
	}
	slices.SortFunc(sorted, func(a, b *v1alpha1.ApplicationDefinition) int { return strings.Compare(a.Name, b.Name) })
	size := 0
	for _, one := range sorted {
		versions := slices.SortedFunc(slices.Values(one.Status.UsedBy), func(a, b v1alpha1.VersionUsage) int {
			return strings.Compare(a.Version, b.Version)
		})
		for _, v := range versions {
			if len(used) == maxUses || len(v.Version) > maxVersion || !versionText.MatchString(v.Version) || v.Count <= 0 {
				continue
			}
			u := v1alpha1.DefinitionUsage{Definition: one.Name, VersionUsage: v1alpha1.VersionUsage{Version: v.Version, Count: min(v.Count, maxUserCount)}}
			for _, name := range v.Installations[:min(len(v.Installations), maxUsers)] {
				if size+len(name) > maxUsersSize || !userName.MatchString(name) {
					continue
				}
				size += len(name)
				u.Installations = append(u.Installations, name)
			}
			u.Count = max(u.Count, int32(len(u.Installations)))
			used = append(used, u)
			count += u.Count
		}
	}
	return used, count
}

// addUsage adds the installations in the clusters of a seed that use its copies of definitions.
func (s *scope) addUsage(l *leftovers) {
	for _, u := range s.kc.Status.Usage {
		for _, name := range u.Installations {
			l.toDelete = append(l.toDelete, fmt.Sprintf("ApplicationInstallation %s (in a cluster of the seed, of ApplicationDefinition %s)", name, u.Definition))
		}
		if more := int(u.Count) - len(u.Installations); more > 0 {
			l.toDelete = append(l.toDelete, fmt.Sprintf("%d more of ApplicationDefinition %s", more, u.Definition))
		}
	}
}

// disown makes the copies of definitions in a seed the seed's own: what is installed from them there goes
// on, and can be changed there.
func (r *Reconciler) disown(ctx context.Context, c metadata.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	copies := c.Resource(definitions)
	return each(ctx, copies, func(o *metav1.PartialObjectMetadata) error {
		if o.Annotations[v1alpha1.CopyOfAnnotation] != r.HubID {
			return nil
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:null}}}`, o.UID, v1alpha1.CopyOfAnnotation)
		_, err := copies.Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
		return err
	})
}
