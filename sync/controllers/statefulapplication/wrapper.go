package statefulapplication

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// maxNames is how many names a message lists.
const maxNames = 5

// judge says whether the Application exists.
func (r *Reconciler) judge(ctx context.Context, obj *v1alpha1.StatefulApplication) (kernel.Outcome, error) {
	name := types.NamespacedName{Namespace: obj.Namespace, Name: obj.GetApplicationName()}
	err := r.Client.Get(ctx, name, &v1alpha1.Application{})
	if apierrors.IsNotFound(err) && obj.Status.Restore != nil {
		// The cache may not know yet what this pass has created.
		err = r.Reader.Get(ctx, name, &v1alpha1.Application{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return kernel.Outcome{}, kernel.Waiting(v1alpha1.ApplicationNotFoundReason, 0, "Application %q does not exist in namespace %q", name.Name, name.Namespace)
	case err != nil:
		return kernel.Outcome{}, fmt.Errorf("get Application %q: %w", name.Name, err)
	}
	message := fmt.Sprintf("Application %q exists", name.Name)
	if from := obj.Status.Source; from != nil {
		message += fmt.Sprintf("; its data is from %s %s/%s", from.Kind, from.Namespace, from.Name)
	}
	return kernel.Outcome{Message: message}, nil
}

// findLastSnapshot finds the newest snapshot of the application that is ready.
func (r *Reconciler) findLastSnapshot(ctx context.Context, obj *v1alpha1.StatefulApplication) error {
	all := &v1alpha1.ApplicationSnapshotList{}
	if err := r.Client.List(ctx, all, client.InNamespace(obj.Namespace)); err != nil {
		return fmt.Errorf("list ApplicationSnapshots: %w", err)
	}
	ready := slices.DeleteFunc(all.Items, func(s v1alpha1.ApplicationSnapshot) bool {
		return s.Spec.Source.ApplicationName != obj.Name || s.Status.Phase != v1alpha1.SnapshotReady || s.Status.CreationTime == nil
	})
	obj.Status.LastSnapshot, obj.Status.LastSnapshotTime = "", nil
	if len(ready) == 0 {
		return nil
	}
	newest := slices.MaxFunc(ready, func(a, b v1alpha1.ApplicationSnapshot) int {
		return cmp.Or(a.Status.CreationTime.Compare(b.Status.CreationTime.Time), cmp.Compare(a.Name, b.Name))
	})
	obj.Status.LastSnapshot, obj.Status.LastSnapshotTime = newest.Name, newest.Status.CreationTime
	return nil
}

// classOf returns the class of an application; nil if it needs none. The error says why it is not known.
func (r *Reconciler) classOf(ctx context.Context, obj *v1alpha1.StatefulApplication) (*v1alpha1.StatefulApplicationClass, error) {
	if name := obj.Spec.ApplicationClassName; name != "" {
		class := &v1alpha1.StatefulApplicationClass{}
		err := r.Client.Get(ctx, types.NamespacedName{Name: name}, class)
		switch {
		case apierrors.IsNotFound(err):
			return nil, kernel.Stalled(v1alpha1.ClassNotFoundReason, "StatefulApplicationClass %q does not exist", name)
		case err != nil:
			return nil, fmt.Errorf("get StatefulApplicationClass %q: %w", name, err)
		}
		return class, usable(class)
	}
	if restored(obj) {
		return nil, nil
	}
	all := &v1alpha1.StatefulApplicationClassList{}
	if err := r.Client.List(ctx, all); err != nil {
		return nil, fmt.Errorf("list StatefulApplicationClasses: %w", err)
	}
	defaults := slices.DeleteFunc(all.Items, func(c v1alpha1.StatefulApplicationClass) bool {
		return c.Annotations[v1alpha1.DefaultClassAnnotation] != "true"
	})
	if len(defaults) == 1 {
		return &defaults[0], usable(&defaults[0])
	}
	var names []string
	for _, c := range defaults {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, kernel.Stalled(v1alpha1.ClassNotFoundReason,
			"no StatefulApplicationClass is the default: set spec.applicationClassName, or annotation %s: \"true\" on a class", v1alpha1.DefaultClassAnnotation)
	}
	return nil, kernel.Stalled(v1alpha1.ClassNotFoundReason,
		"%s are all the default StatefulApplicationClass: set spec.applicationClassName, or leave annotation %s on one of them", excerpt.Names(names, maxNames), v1alpha1.DefaultClassAnnotation)
}

// usable returns an error if a class of ours cannot be used.
func usable(class *v1alpha1.StatefulApplicationClass) error {
	if class.Handler != v1alpha1.DataHandler || len(class.Parameters) == 0 {
		return nil
	}
	return kernel.Stalled(v1alpha1.InvalidClassReason, "StatefulApplicationClass %q has parameters, and handler %s has none: remove them", class.Name, v1alpha1.DataHandler)
}

// giveUp ends a restore that has begun and cannot go on.
func (w *work) giveUp(err error) error {
	if begun(w.obj) && kernel.IsStalled(err) {
		w.obj.Status.Restore.Phase = v1alpha1.RestoreFailed
		return kernel.Stalled(kernel.ReasonOf(err), "%w: the restore cannot go on; delete the StatefulApplication to remove what it has created", err)
	}
	return err
}

// ready reports whether a snapshot can be restored; reason says why not.
func ready(s *v1alpha1.ApplicationSnapshot) (message string, ok bool) {
	switch {
	case s.Status.Phase == v1alpha1.SnapshotReady && s.Status.BoundSnapshotContentName != "":
		return "", true
	case s.Status.Phase == v1alpha1.SnapshotFailed:
		return conditions.GetMessage(s, v1alpha1.ReadyCondition), false
	default:
		return "", false
	}
}
