package kubernetescluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	// shown is how many objects of a sort a message names.
	shown = 5
	// maxReason bounds what a message repeats of why an object does not go.
	maxReason = 512
)

// leftovers is what the deletion of a KubernetesCluster waits for, by what a user has to do about it.
type leftovers struct {
	// toDelete are the objects that go only if a user deletes them, and toCommit those that a GitSync
	// would deliver again.
	toDelete, toCommit []string
	// toResume are the GitSyncs that are suspended.
	toResume []string
	// failing are the objects that do not go, and why.
	failing []string
	// going are the objects that go without help.
	going []string
}

// err returns an error that names everything, and advises only what is needed; nil if nothing is left.
func (l *leftovers) err() error {
	var texts []string
	for _, sort := range []struct {
		names     []string
		one, more string
	}{
		{l.toDelete, ": delete it", ": delete them"},
		{l.toCommit, ": remove it from the repository of that GitSync", ": remove them from the repositories of these GitSyncs"},
		{l.toResume, " is suspended: resume it, and it deletes what it delivered", " are suspended: resume them, and they delete what they delivered"},
		{l.going, " is being deleted", " are being deleted"},
	} {
		switch len(sort.names) {
		case 0:
		case 1:
			texts = append(texts, sort.names[0]+sort.one)
		default:
			texts = append(texts, excerpt.Names(sort.names, shown)+sort.more)
		}
	}
	if len(l.failing) > 0 {
		texts = append(texts, excerpt.Texts(l.failing, "; ", shown))
	}
	if len(texts) == 0 {
		return nil
	}
	return reconcile.Waiting(v1alpha1.InUseReason, 0, "waiting for what is left in the cluster: %s", strings.Join(texts, "; "))
}

// byThemselves reports whether all of it goes without help.
func (l *leftovers) byThemselves() bool {
	return len(l.toDelete)+len(l.toCommit)+len(l.toResume)+len(l.failing) == 0
}

// addGitSyncs adds the GitSyncs that have objects in the cluster, and returns those of the namespace by
// the mark of what they deliver. They remove their objects without help, unless they are suspended:
// a cluster that is being deleted is no longer selected.
func (r *Reconciler) addGitSyncs(ctx context.Context, s *scope, l *leftovers) (map[string]*v1alpha1.GitSync, error) {
	list := &v1alpha1.GitSyncList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.kc.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list GitSyncs: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.GitSync) int { return strings.Compare(a.Name, b.Name) })
	byMark := map[string]*v1alpha1.GitSync{}
	for i := range list.Items {
		gs := &list.Items[i]
		byMark[apply.Owner{HubID: r.HubID, Kind: v1alpha1.GitSyncKind, Namespace: gs.Namespace, Name: gs.Name}.String()] = gs
		at := delivery(gs, s.kc.Name)
		name := "GitSync " + client.ObjectKeyFromObject(gs).String() + " (of the hub)"
		switch {
		case at == nil:
		case gs.Spec.Suspend && gs.DeletionTimestamp.IsZero():
			l.toResume = append(l.toResume, name)
		case at.Leaving && at.Message != "":
			l.failing = append(l.failing, fmt.Sprintf("%s cannot delete what it delivered: %s", name, excerpt.Of(at.Message, maxReason)))
		default:
			l.going = append(l.going, "what "+name+" delivered")
		}
	}
	return byMark, nil
}

// delivery returns what a GitSync says of its objects in a cluster; nil if it has none there.
func delivery(gs *v1alpha1.GitSync, cluster string) *v1alpha1.GitSyncClusterStatus {
	for i := range gs.Status.Clusters {
		if gs.Status.Clusters[i].Name == cluster {
			return &gs.Status.Clusters[i]
		}
	}
	return nil
}

// addInstallations adds the installations of the cluster, except those that a GitSync is about to delete.
func (s *scope) addInstallations(list *v1alpha1.ApplicationInstallationList, byMark map[string]*v1alpha1.GitSync, l *leftovers) {
	for i := range list.Items {
		inst := &list.Items[i]
		name := "ApplicationInstallation " + client.ObjectKeyFromObject(inst).String()
		ready := conditions.Get(inst, v1alpha1.ReadyCondition)
		gs := byMark[inst.Annotations[v1alpha1.OwnerAnnotation]]
		switch {
		case !inst.DeletionTimestamp.IsZero() && ready != nil && failsToGo(ready.Reason):
			l.failing = append(l.failing, fmt.Sprintf("%s cannot be uninstalled: %s", name, excerpt.Of(ready.Message, maxReason)))
		case !inst.DeletionTimestamp.IsZero(), inst.Labels[v1alpha1.ProvidedLabel] == v1alpha1.ProvidedEnforced && gs == nil:
			l.going = append(l.going, name) // what is enforced is deleted without help
		case gs == nil:
			l.toDelete = append(l.toDelete, name)
		case delivery(gs, s.kc.Name) == nil && gs.Spec.ClusterSelector == nil:
			l.toCommit = append(l.toCommit, name+" of GitSync "+client.ObjectKeyFromObject(gs).String())
		case delivery(gs, s.kc.Name) == nil: // it has left the cluster, and did not prune
			l.toDelete = append(l.toDelete, name)
		}
	}
	for _, names := range []*[]string{&l.toDelete, &l.toCommit, &l.going, &l.failing} {
		slices.Sort(*names)
	}
}

// failsToGo reports whether an installation that is being deleted with that reason needs help.
func failsToGo(reason string) bool {
	return slices.Contains([]string{
		v1alpha1.UninstallFailedReason, v1alpha1.ServiceAccountNotFoundReason, v1alpha1.ForbiddenReason, v1alpha1.InventoryUnreadableReason,
	}, reason)
}
