package kubernetescluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// What is kept of the installations of a cluster.
const (
	// maxInstallations is the limit that the API sets.
	maxInstallations = 2000
	// maxInstallationsSize bounds the names of all together: they are those of a cluster that may say what it likes,
	// and stand in a status beside other things.
	maxInstallationsSize = 512 << 10
)

// summarize writes a summary of the cluster's installations to the status. While they are not
// known, the last summary stays.
func (r *Reconciler) summarize(ctx context.Context, s *scope) error {
	if s.state.Yields != nil { // they are in the status of the one that drives them
		s.kc.Status.InstallationCount, s.kc.Status.Installations, s.kc.Status.Usage = 0, nil, nil
		begun, known, err := r.begunBy(ctx, s.kc, s.state.UID)
		if known {
			s.kc.Status.Definitions = begun // should it come first some day
		}
		if provided, known, failed := r.providedBy(ctx, s.kc, s.state.UID); failed == nil && known {
			s.kc.Status.Provided = provided
		}
		return err
	}
	if s.kc.IsSeed() {
		return r.summarizeSeed(ctx, s)
	}
	found, ok, err := r.installations(ctx, s)
	if err != nil || !ok {
		return err
	}
	s.kc.Status.InstallationCount = int32(len(found))
	s.forgetUnused(found)
	s.kc.Status.Installations = shorten(slices.DeleteFunc(found, isOdd))
	return nil
}

// forgetUnused drops the definitions of which there is no installation any more. The controller of
// installations adds them.
func (s *scope) forgetUnused(found []v1alpha1.InstallationSummary) {
	used := make(map[string]bool, len(found))
	for i := range found {
		used[found[i].Definition] = true
	}
	maps.DeleteFunc(s.kc.Status.Definitions, func(name, _ string) bool { return !used[name] })
}

// installations returns the installations of the cluster, sorted, and whether all are known.
func (r *Reconciler) installations(ctx context.Context, s *scope) ([]v1alpha1.InstallationSummary, bool, error) {
	list, err := r.listInstallations(ctx, s)
	if err != nil || list == nil {
		return nil, false, err
	}
	found := make([]v1alpha1.InstallationSummary, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, inShort(&list.Items[i]))
	}
	slices.SortFunc(found, byName)
	return found, true, nil
}

// listInstallations returns the installations of the cluster, which are not to be changed; nil if they
// are not known.
func (r *Reconciler) listInstallations(ctx context.Context, s *scope) (*v1alpha1.ApplicationInstallationList, error) {
	e := r.engagements.Get(s.key)
	if e == nil || !e.synced() {
		return nil, nil
	}
	list := &v1alpha1.ApplicationInstallationList{}
	if err := e.cluster.Client().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list installations: %w", err)
	}
	return list, nil
}

// inShort summarizes an installation, and does not modify it.
func inShort(inst *v1alpha1.ApplicationInstallation) v1alpha1.InstallationSummary {
	short := v1alpha1.InstallationSummary{
		Namespace:  inst.Namespace,
		Name:       inst.Name,
		Definition: inst.Spec.ApplicationRef.Name,
		Version:    inst.Spec.ApplicationRef.Version,
		Ready:      metav1.ConditionUnknown,
	}
	if resolved := inst.Status.Application; resolved != nil {
		short.Version = resolved.Version
	}
	if ready := meta.FindStatusCondition(inst.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		short.Ready = ready.Status
	}
	return short
}

// isOdd reports whether no API server that keeps to its own rules has an installation with such names. It uses no version
// of any definition.
func isOdd(i v1alpha1.InstallationSummary) bool {
	return !objectName.MatchString(i.Namespace) || !objectName.MatchString(i.Name) || !objectName.MatchString(i.Definition) ||
		len(i.Version) > maxVersion || !versionText.MatchString(i.Version)
}

func byName(a, b v1alpha1.InstallationSummary) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// shorten keeps as many installations as fit into a status. It keeps one installation of every
// version in use in any case: removal guards rely on the list.
func shorten(all []v1alpha1.InstallationSummary) []v1alpha1.InstallationSummary {
	if len(all) <= maxInstallations && fitting(all) == len(all) {
		return all
	}
	type use struct{ definition, version string }
	used := map[use]bool{}
	var kept, rest []v1alpha1.InstallationSummary
	for _, i := range all {
		u := use{i.Definition, i.Version}
		if used[u] {
			rest = append(rest, i)
			continue
		}
		used[u] = true
		kept = append(kept, i)
	}
	kept = append(kept, rest...)
	kept = kept[:min(maxInstallations, fitting(kept))]
	slices.SortFunc(kept, byName)
	return kept
}

// fitting returns how many of them are within maxInstallationsSize.
func fitting(all []v1alpha1.InstallationSummary) int {
	size := 0
	for n, i := range all {
		if size += len(i.Namespace) + len(i.Name) + len(i.Definition) + len(i.Version); size > maxInstallationsSize {
			return n
		}
	}
	return len(all)
}
