package statefulapplication

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// Object is what is created, or found.
type object = unstructured.Unstructured

// find reads an object as it is in the cluster; nil if it does not exist.
func (r *Reconciler) find(ctx context.Context, o *object) (*object, error) {
	live := &object{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(o), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, nil
}

// made reports whether an object was created for an application.
func made(o *object, by *v1alpha1.StatefulApplication) bool {
	return o.GetAnnotations()[v1alpha1.RestoredByAnnotation] == string(by.UID)
}

// create creates an object that may have been created before. A refusal is a problem; the error means
// that the API server has not answered.
func (w *work) create(ctx context.Context, wanted *object) (*manifest.Problem, error) {
	o := wanted.DeepCopy()
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.RestoredByAnnotation] = string(w.obj.UID)
	o.SetAnnotations(annotations)
	err := w.Client.Create(ctx, o, client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case err == nil:
		return nil, nil
	case apierrors.IsAlreadyExists(err):
		live, err := w.find(ctx, o)
		if err != nil || live != nil && made(live, w.obj) {
			return nil, err
		}
		return problem(o, v1alpha1.AlreadyExistsReason, "it exists already, and is not overwritten: rename it by a rule, or delete it"), nil
	}
	return refusal(o, err)
}

func problem(o *object, reason, format string, args ...any) *manifest.Problem {
	return &manifest.Problem{ID: manifest.Object{Unstructured: o}.ID(), Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// refusal turns what the API server answered into a problem; the error is returned if it has not
// answered.
func refusal(o *object, err error) (*manifest.Problem, error) {
	var status apierrors.APIStatus
	switch {
	case meta.IsNoMatchError(err):
		return problem(o, v1alpha1.KindNotServedReason, "the cluster does not serve this kind: install its CRD"), nil
	case !errors.As(err, &status), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return nil, fmt.Errorf("create %s: %w", manifest.Object{Unstructured: o}.ID(), err)
	case apierrors.IsInvalid(err) && o.GetKind() == "Secret":
		// The message may quote what the Secret holds.
		return problem(o, string(apierrors.ReasonForError(err)), "the API server refuses it as invalid"), nil
	case isRights(err):
		return problem(o, v1alpha1.ForbiddenReason, "%s: grant that to the ServiceAccount of role data, for example with a ClusterRole "+
			`that has label apps.waybill.dev/aggregate-to-data: "true"`, err.Error()), nil
	default:
		return problem(o, string(apierrors.ReasonForError(err)), "%s", err.Error()), nil
	}
}

// isRights reports whether a request was refused for want of rights: quotas and admission are Forbidden,
// too, but say so in other words.
func isRights(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return false
	}
	message := status.Status().Message
	for i := range message {
		if message[i] == ':' {
			return len(message) > i+6 && message[i+1:i+7] == " User "
		}
	}
	return false
}

// prepare checks that everything can be created, and records what is going to be.
func (w *work) prepare(ctx context.Context) (v1alpha1.RestorePhase, kernel.Outcome, error) {
	restore := w.obj.Status.Restore
	restore.ContentName, restore.Rules = w.content.Name, w.plan.Rules
	all := w.plan.All()
	if len(all) > maxObjects {
		return "", kernel.Outcome{}, kernel.Stalled(v1alpha1.LimitExceededReason, "the snapshot holds %d objects, and at most %d can be restored", len(all), maxObjects)
	}
	if err := w.findVolumes(ctx); err != nil {
		return "", kernel.Outcome{}, err
	}
	if err := w.checkFree(ctx, all); err != nil {
		return "", kernel.Outcome{}, err
	}
	restore.Inventory, restore.Problems, restore.Objects = nil, nil, int32(len(all))
	for _, o := range all {
		id := manifest.Object{Unstructured: o}.ID()
		restore.Inventory = append(restore.Inventory, v1alpha1.ObjectReference{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name})
	}
	return v1alpha1.RestoreClaims, kernel.Outcome{}, nil
}

// maxObjects is how many objects a restore may create: its status lists them.
const maxObjects = 5000

// checkFree returns an error that lists the objects that exist already, and those of which that cannot be
// found out.
func (w *work) checkFree(ctx context.Context, all []*object) error {
	var problems []manifest.Problem
	var taken []string
	for _, o := range all {
		live, err := w.find(ctx, o)
		if err != nil {
			found, err := refusal(o, err)
			if err != nil {
				return err
			}
			problems = append(problems, *found)
		} else if live != nil && !made(live, w.obj) {
			found := problem(o, v1alpha1.AlreadyExistsReason, "it exists already, and is not overwritten: rename it by a rule, or delete it")
			problems, taken = append(problems, *found), append(taken, found.ID.String())
		}
	}
	w.obj.Status.Restore.Problems = kernel.Problems(problems)
	switch {
	case len(taken) > 0:
		return kernel.Failed(v1alpha1.AlreadyExistsReason, "nothing was created, because %s: rename them by rules of type Name, or delete them", exist(taken))
	case len(problems) > 0:
		return kernel.Failed(v1alpha1.RestoreRefusedReason, "nothing was created: %w", problems[0])
	}
	return nil
}
