package applicationsnapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// user returns what uses a content now, for messages; empty if nothing does.
func (r *Reconciler) user(ctx context.Context, content *v1alpha1.ApplicationSnapshotContent) (string, error) {
	applications := &v1alpha1.StatefulApplicationList{}
	if err := r.Client.List(ctx, applications, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list StatefulApplications: %w", err)
	}
	for i := range applications.Items {
		a := &applications.Items[i]
		if restoring(a) && a.Status.Restore.ContentName == content.Name {
			return fmt.Sprintf("the restore of StatefulApplication %q of namespace %q", a.Name, a.Namespace), nil
		}
	}
	rollbacks := &v1alpha1.ApplicationRollbackList{}
	if err := r.Client.List(ctx, rollbacks, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list ApplicationRollbacks: %w", err)
	}
	for i := range rollbacks.Items {
		if b := &rollbacks.Items[i]; needs(b, content.Spec.SnapshotRef) {
			return fmt.Sprintf("ApplicationRollback %q of namespace %q", b.Name, b.Namespace), nil
		}
	}
	return "", nil
}

// rollbacks are the ApplicationRollbacks of an application, sorted by their names.
type rollbacks []v1alpha1.ApplicationRollback

// rollbacks returns those of an application. When one of them changes, the snapshot is reconciled.
func (s *scope) rollbacks(ctx context.Context, application string, reader client.Reader) (rollbacks, error) {
	all := &v1alpha1.ApplicationRollbackList{}
	if err := reader.List(ctx, all, client.InNamespace(s.obj.Namespace)); err != nil {
		return nil, fmt.Errorf("list ApplicationRollbacks: %w", err)
	}
	found := slices.DeleteFunc(all.Items, func(b v1alpha1.ApplicationRollback) bool {
		return b.Spec.ApplicationName != s.obj.Spec.Source.ApplicationName && b.Status.ApplicationName != application
	})
	slices.SortFunc(found, func(a, b v1alpha1.ApplicationRollback) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// first returns the name of the first one that is one of those; empty if there is none.
func (r rollbacks) first(those func(*v1alpha1.ApplicationRollback) bool) string {
	for i := range r {
		if those(&r[i]) {
			return r[i].Name
		}
	}
	return ""
}

// versions returns what changes when one of them does, begins to be one, or ceases to be.
func (r rollbacks) versions() string {
	var all strings.Builder
	for i := range r {
		fmt.Fprintf(&all, "%s/%s ", r[i].UID, r[i].ResourceVersion)
	}
	return all.String()
}

// needs reports whether a rollback needs a snapshot: the one that it goes to until it has ended, and that of
// the state before as long as it can be undone, or has to be restored yet.
func needs(b *v1alpha1.ApplicationRollback, ref *v1alpha1.NamespacedReference) bool {
	if ref == nil {
		return false
	}
	safety := b.Namespace == ref.Namespace && b.Status.SafetySnapshot == ref.Name
	switch b.Status.Phase {
	case "", v1alpha1.RollbackReverted, v1alpha1.RollbackFinal:
		return false
	case v1alpha1.RollbackFailed: // if neither state was reached, it may be tried again
		return safety && len(b.Status.Held)+len(b.Status.Volumes) > 0
	case v1alpha1.RollbackCompleted:
		return safety
	}
	to := b.Spec.Source.SnapshotRef
	return safety || to != nil && to.Name == ref.Name && cmp.Or(to.Namespace, b.Namespace) == ref.Namespace
}
