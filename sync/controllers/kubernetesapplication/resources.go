package kubernetesapplication

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
)

// writesAtATime is how many resources of one application are written at a time.
const writesAtATime = 8

// list finds, among the resources of the application, those of the templates, and those that are no
// longer wanted.
func (s *scope) list(ours map[string]*v1alpha1.KubernetesApplicationResource) {
	s.resources = make([]resource, len(s.app.Spec.ResourceTemplates))
	for i := range s.app.Spec.ResourceTemplates {
		t := &s.app.Spec.ResourceTemplates[i]
		live := ours[t.Metadata.Name]
		delete(ours, t.Metadata.Name)
		s.resources[i].live = live
		if live != nil && !s.keeps(live, t) {
			s.surplus = append(s.surplus, live)
		}
	}
	for _, live := range ours {
		s.surplus = append(s.surplus, live)
	}
	s.surplus = firstToGo(s.surplus)
}

// ours returns the resources of the application in the cache, by name.
func (r *Reconciler) ours(ctx context.Context, s *scope) (map[string]*v1alpha1.KubernetesApplicationResource, error) {
	list := &v1alpha1.KubernetesApplicationResourceList{}
	err := r.Client.List(ctx, list, client.InNamespace(s.app.Namespace),
		client.MatchingFields{applicationIndex: s.app.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	ours := make(map[string]*v1alpha1.KubernetesApplicationResource, len(list.Items))
	for i := range list.Items {
		if s.owns(&list.Items[i]) {
			ours[list.Items[i].Name] = &list.Items[i]
		}
	}
	return ours, nil
}

// owns reports whether a resource is controlled by the application, or was created by it before it
// was restored from a backup under another UID.
func (s *scope) owns(live *v1alpha1.KubernetesApplicationResource) bool {
	controller := metav1.GetControllerOf(live)
	if controller != nil && controller.UID == s.app.UID {
		return true
	}
	alive := controller != nil && !s.isEarlierSelf(*controller)
	return !alive && live.Annotations[v1alpha1.OwnerAnnotation] == s.owner
}

// whose says whose a resource is that is not ours.
func (s *scope) whose(live *v1alpha1.KubernetesApplicationResource) string {
	if controller := metav1.GetControllerOf(live); controller != nil {
		return fmt.Sprintf("belongs to %s %s/%s", controller.Kind, live.Namespace, controller.Name)
	}
	owner, marked := apply.OwnerOf(live)
	if !marked {
		return "has no owner"
	}
	whose := fmt.Sprintf("belongs to %s %s", owner.Kind, owner.ObjectKey())
	if !strings.HasPrefix(s.owner, owner.HubID+"/") {
		whose += " of hub " + owner.HubID
	}
	return whose
}

// followed reports whether the application is gone, and another one of its name may be there: what a
// cache shows as resources of an earlier one may be of that one, if the cache of applications is
// behind that of resources. Where there is a doubt, it looks past the cache.
func (r *Reconciler) followed(ctx context.Context, s *scope, ours map[string]*v1alpha1.KubernetesApplicationResource) (bool, error) {
	doubt := false
	for _, live := range ours {
		controller := metav1.GetControllerOf(live)
		doubt = doubt || controller != nil && controller.UID != s.app.UID
	}
	if !doubt {
		return false, nil
	}
	now := &v1alpha1.KubernetesApplication{}
	if err := r.Direct.Get(ctx, s.key, now); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get application: %w", err)
	}
	return now.UID != s.app.UID, nil
}

// isEarlierSelf reports whether a reference is to another application of the same name, which can
// only be an earlier one, unless the application is followed.
func (s *scope) isEarlierSelf(ref metav1.OwnerReference) bool {
	gv, kind := v1alpha1.GroupVersion.String(), v1alpha1.KubernetesApplicationKind
	return ref.APIVersion == gv && ref.Kind == kind && ref.Name == s.app.Name && ref.UID != s.app.UID
}

// keeps reports whether a resource can become what its template says. The cluster and the identity
// of a resource are immutable: if they differ, the resource has to be created again.
func (s *scope) keeps(live *v1alpha1.KubernetesApplicationResource, t *v1alpha1.ResourceTemplate) bool {
	moved := live.Spec.ClusterName != "" && live.Spec.ClusterName != s.app.Spec.ClusterName
	return !moved && live.Spec.Template.SameObject(t.Spec.Template)
}

// keep brings the resources to what the templates say, and deletes those that are surplus. A
// resource that cannot be written does not stop the others.
func (r *Reconciler) keep(ctx context.Context, s *scope) {
	group := errgroup.Group{}
	group.SetLimit(writesAtATime)
	for i := range s.resources {
		group.Go(func() error {
			r.bring(ctx, s, i)
			return nil
		})
	}
	for _, live := range s.surplus {
		group.Go(func() error {
			return r.delete(ctx, live)
		})
	}
	s.failed = cmp.Or(group.Wait(), s.failed) // what went wrong with a template is in s.resources
}

// bring creates or updates the resource of one template. It writes no other part of the scope.
func (r *Reconciler) bring(ctx context.Context, s *scope, i int) {
	t, found := &s.app.Spec.ResourceTemplates[i], &s.resources[i]
	switch live := found.live; {
	case live == nil:
		*found = r.create(ctx, s, t)
	case !live.DeletionTimestamp.IsZero(), !s.keeps(live, t):
		// its deletion triggers a reconciliation
	default:
		*found = r.update(ctx, s, t, live)
	}
}

// create creates a resource. If the name is taken, it looks past the cache: we may have taken it
// ourselves, a moment ago.
func (r *Reconciler) create(ctx context.Context, s *scope, t *v1alpha1.ResourceTemplate) resource {
	key := types.NamespacedName{Namespace: s.app.Namespace, Name: t.Metadata.Name}
	live := &v1alpha1.KubernetesApplicationResource{}
	if r.Client.Get(ctx, key, live, &client.GetOptions{UnsafeDisableDeepCopy: new(true)}) == nil {
		return s.arrived(live)
	}
	made := s.desired(nil, t)
	err := r.Client.Create(ctx, made, client.FieldOwner(v1alpha1.FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		return written(made, err)
	}
	live = &v1alpha1.KubernetesApplicationResource{}
	if err := r.Direct.Get(ctx, key, live); err != nil {
		return written(nil, err)
	}
	return s.arrived(live)
}

// arrived returns the result for a resource that was not there when ours were listed: it belongs to
// another owner, or is one of ours that the cache had not shown and that was not compared with its
// template.
func (s *scope) arrived(live *v1alpha1.KubernetesApplicationResource) resource {
	if !s.owns(live) {
		return resource{conflict: s.whose(live)}
	}
	return resource{live: live, stale: true}
}

// update writes a resource if it is not as it should be. Of two writers that saw the same state,
// the second is refused. It is not certain that the event of the first triggers a reconciliation:
// the predicates may filter it out.
func (r *Reconciler) update(ctx context.Context, s *scope, t *v1alpha1.ResourceTemplate, live *v1alpha1.KubernetesApplicationResource) resource {
	wanted := s.desired(live, t)
	if equality.Semantic.DeepEqual(live, wanted) {
		return resource{live: live}
	}
	wanted = wanted.DeepCopy()
	err := r.Client.Update(ctx, wanted, client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return resource{live: live, stale: true}
	case err != nil:
		return resource{live: live, refused: err}
	default:
		return resource{live: wanted}
	}
}

func written(made *v1alpha1.KubernetesApplicationResource, err error) resource {
	if err != nil {
		return resource{refused: err}
	}
	return resource{live: made}
}

// delete deletes a resource that is no longer wanted; it is gone when its object is.
func (r *Reconciler) delete(ctx context.Context, live *v1alpha1.KubernetesApplicationResource) error {
	if !live.DeletionTimestamp.IsZero() {
		return nil
	}
	err := r.Client.Delete(ctx, live, client.Preconditions{UID: &live.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete resource %s: %w", live.Name, err)
	}
	return nil
}
