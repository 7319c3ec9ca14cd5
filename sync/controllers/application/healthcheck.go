package application

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	validate "waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/controllers/application/ownership"
	"waybill.dev/waybill/sync/reconcile"
)

// checkHealth ensures that only the Pod that the spec wants exists, and mirrors whether it is ready. What prevents that is the checkup of the scope.
func (r *Reconciler) checkHealth(ctx context.Context, s *scope) {
	s.app.Status.Ready = metav1.ConditionUnknown
	pods, known, failure := r.pods.of(s.key, s.app.UID)
	s.unread = s.unread || !known && (failure == nil || s.app.Spec.HealthCheck != nil && errors.Is(failure, errNoPods))
	if s.app.Spec.HealthCheck == nil {
		if err := r.deletePods(ctx, pods, ""); err != nil {
			s.checkup = reconcile.Failed(v1alpha1.HealthCheckRefusedReason, "delete the Pod of the health check: %w", err)
		}
		return
	}
	wanted, err := healthCheckPod(s.app)
	if err != nil {
		s.checkup = reconcile.Stalled(v1alpha1.InvalidSpecReason, "%w", err)
		return
	}
	if !known {
		s.checkup = watchingPods(failure)
		return
	}
	if err := r.deletePods(ctx, pods, wanted.Name); err != nil {
		s.checkup = reconcile.Failed(v1alpha1.HealthCheckRefusedReason, "delete the Pod of the health check before: %w", err)
		return
	}
	var current *pod
	for _, p := range pods {
		if p.key.Name == wanted.Name {
			current = p
		}
	}
	s.checkup = r.checkPod(ctx, s, wanted, current)
}

// watchingPods returns the error for a pass that does not know the Pods of health checks.
func watchingPods(err error) error {
	switch {
	case err == nil:
		return nil
	case watch.IsUnwatchable(err):
		return reconcile.Stalled(v1alpha1.ForbiddenReason, "cannot list and watch pods: %w", watch.Stable(err))
	default:
		return reconcile.Waiting(v1alpha1.HealthCheckNotReadyReason, 0, "watch pods: %w", watch.Stable(err))
	}
}

// checkPod creates the Pod if there is none, and deletes one that has ended, so that it is created
// again.
func (r *Reconciler) checkPod(ctx context.Context, s *scope, wanted *corev1.Pod, current *pod) error {
	switch {
	case current == nil:
		return r.createPod(ctx, s, wanted)
	case current.deleting:
		return podLeaves(wanted)
	case current.finished:
		if err := r.deletePod(ctx, current); err != nil {
			return reconcile.Failed(v1alpha1.HealthCheckRefusedReason, "delete Pod %s, which has ended: %w", wanted.Name, err)
		}
		return reconcile.Waiting(v1alpha1.HealthCheckNotReadyReason, 0, "Pod %s has ended, and is recreated", wanted.Name)
	case current.ready == "":
		return reconcile.Waiting(v1alpha1.HealthCheckNotReadyReason, 0, "Pod %s has no condition Ready yet%s", wanted.Name, because(current))
	}
	s.app.Status.Ready = current.ready
	if current.ready != metav1.ConditionTrue {
		return reconcile.Waiting(v1alpha1.HealthCheckNotReadyReason, 0, "Pod %s is not ready%s", wanted.Name, because(current))
	}
	return nil
}

func because(p *pod) string {
	if p.message == "" {
		return ""
	}
	return ": " + p.message
}

// createPod creates the Pod, unless that was tried a moment ago, or the one of a former Application is
// still on its way out.
func (r *Reconciler) createPod(ctx context.Context, s *scope, wanted *corev1.Pod) error {
	if there := r.pods.named(client.ObjectKeyFromObject(wanted)); there != nil && there.leaves(s.key) {
		return s.awaitPod(wanted, there)
	}
	if wait, refusal := r.pods.try(s.app.UID, wanted.Name, r.kernel.Backoff); wait > 0 {
		s.requeueAfter = wait
		if refusal != nil {
			return reconcile.Waiting(v1alpha1.HealthCheckRefusedReason, wait, "%w", refusal)
		}
		return beingMade(wanted)
	}
	err := r.Client.Create(ctx, wanted, client.FieldOwner(v1alpha1.OwnershipFieldManager))
	switch {
	case err == nil:
		return beingMade(wanted)
	case apierrors.IsAlreadyExists(err):
		return r.checkNamesake(ctx, s, wanted)
	}
	err = reconcile.Failed(v1alpha1.HealthCheckRefusedReason, "create the Pod of the health check: %w", ownership.Denied(watch.Stable(err)))
	r.pods.refused(s.app.UID, err)
	return err
}

func beingMade(wanted *corev1.Pod) error {
	return reconcile.Waiting(v1alpha1.HealthCheckNotReadyReason, 0, "Pod %s is being created", wanted.Name)
}

// checkNamesake asks for the Pod that has the name of the wanted one: the watch, which does not know
// it, may be behind.
func (r *Reconciler) checkNamesake(ctx context.Context, s *scope, wanted *corev1.Pod) error {
	found, err := r.Cluster.Metadata().Resource(podResource).Namespace(wanted.Namespace).Get(ctx, wanted.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.requeueAfter = minBackoff
		return beingMade(wanted)
	}
	if err != nil {
		return reconcile.Failed(v1alpha1.HealthCheckNotReadyReason, "read Pod %s: %w", wanted.Name, watch.Stable(err))
	}
	there := reducePod(found)
	switch {
	case there.ownerUID == s.app.UID:
		return beingMade(wanted)
	case there.leaves(s.key):
		return s.awaitPod(wanted, there)
	}
	err = reconcile.Failed(v1alpha1.HealthCheckRefusedReason, "Pod %s exists and does not belong to this Application: delete it", wanted.Name)
	r.pods.refused(s.app.UID, err)
	return err
}

// awaitPod waits until a Pod is gone that has the name of the wanted one. If it belongs to an
// Application of this name, the watch triggers a reconciliation.
func (s *scope) awaitPod(wanted *corev1.Pod, there *pod) error {
	if there.owner != s.key {
		s.requeueAfter = minBackoff
	}
	return podLeaves(wanted)
}

func podLeaves(wanted *corev1.Pod) error {
	return reconcile.Waiting(v1alpha1.HealthCheckNotReadyReason, 0, "Pod %s is being deleted, and will be recreated", wanted.Name)
}

// deletePods deletes the given Pods except the one with that name.
func (r *Reconciler) deletePods(ctx context.Context, pods []*pod, except string) error {
	var errs []error
	for _, p := range pods {
		if !p.deleting && p.key.Name != except {
			errs = append(errs, r.deletePod(ctx, p))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) deletePod(ctx context.Context, p *pod) error {
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.key.Namespace, Name: p.key.Name}}
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: &p.uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another one
	}
	return watch.Stable(err)
}

// healthCheckPod returns the Pod of the health check.
func healthCheckPod(app *v1alpha1.Application) (*corev1.Pod, error) {
	template, errs := validate.HealthCheckTemplate(app)
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       app.Namespace,
			Name:            healthCheckName(app),
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(app, v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind))},
		},
		Spec: template.Spec,
	}
	if p.Labels == nil {
		p.Labels = make(map[string]string, 1)
	}
	p.Labels[v1alpha1.HealthCheckLabel] = healthCheckLabel(app)
	if p.Annotations == nil {
		p.Annotations = make(map[string]string, 1)
	}
	p.Annotations[v1alpha1.ApplicationAnnotation] = app.Name
	return p, nil
}

func healthCheckLabel(app *v1alpha1.Application) string {
	return shorten(app.Name, validation.LabelValueMaxLength)
}

// healthCheckName returns `<application>-health-<hash of the template>`, no longer than a host name
// may be: the same template yields the same name, a different one a different name.
func healthCheckName(app *v1alpha1.Application) string {
	suffix := "-health-" + hash(app.Spec.HealthCheck.Template.Raw)
	return shorten(app.Name, validation.DNS1123LabelMaxLength-len(suffix)) + suffix
}

// shorten cuts a name to a length, and keeps it unique with a hash.
func shorten(name string, length int) string {
	if len(name) <= length {
		return name
	}
	suffix := "-" + hash([]byte(name))
	return strings.TrimRight(name[:length-len(suffix)], "-.") + suffix
}

// hash consists of letters and digits that form no words.
func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return rand.SafeEncodeString(fmt.Sprint(binary.BigEndian.Uint32(sum[:4])))
}
