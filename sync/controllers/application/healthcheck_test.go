package application_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// healthCheck is one whose container is called so.
func healthCheck(container string) *v1alpha1.ApplicationHealthCheck {
	template, err := json.Marshal(corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels()},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{
				Name: container, Image: "example.com/check",
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}},
			}},
		},
	})
	if err != nil {
		return nil
	}
	return &v1alpha1.ApplicationHealthCheck{Template: runtime.RawExtension{Raw: template}}
}

// pods of the health check.
func (w *world) pods() []corev1.Pod {
	w.T.Helper()
	list := &corev1.PodList{}
	require.NoError(w.T, w.Client.List(w.T.Context(), list, inNamespace(w), client.HasLabels{v1alpha1.HealthCheckLabel}))
	return list.Items
}

// awaitPod waits until there is just one Pod of the health check, as wanted.
func (w *world) awaitPod(wanted func(*corev1.Pod) bool) *corev1.Pod {
	w.T.Helper()
	var pod *corev1.Pod
	require.True(w.T, w.Eventually(func() bool {
		pods := w.pods()
		if len(pods) != 1 || !pods[0].DeletionTimestamp.IsZero() || !wanted(&pods[0]) {
			return false
		}
		pod = &pods[0]
		return true
	}), "%+v", w.pods())
	return pod
}

func (w *world) awaitStatusReady(app *v1alpha1.Application, ready metav1.ConditionStatus) {
	w.T.Helper()
	hub.Await(w.World, app, "status.ready is not "+string(ready), func(app *v1alpha1.Application) bool { return app.Status.Ready == ready })
}

func anyPod(*corev1.Pod) bool { return true }

// A5, A81-A87: the Pod is created, mirrored, replaced, recreated and removed.
func TestHealthCheck_lifeOfThePod(t *testing.T) {
	w := newWorld(t)
	app := shop(named("Pod", ""))
	app.Spec.Components = nil
	app.Spec.HealthCheck = healthCheck("first")
	w.Create(app)
	w.awaitStatusReady(app, metav1.ConditionTrue)
	hub.AwaitReady(w.World, app)
	first := w.awaitPod(anyPod)
	assert.True(t, strings.HasPrefix(first.Name, "shop-health-"), first.Name)
	assert.True(t, metav1.IsControlledBy(first, app))
	assert.Equal(t, "shop", first.Labels[v1alpha1.HealthCheckLabel])
	assert.Equal(t, "shop", first.Annotations[v1alpha1.ApplicationAnnotation], "A94: the way back")

	// A84: deleted by hand, it is recreated under the same name (A82).
	require.NoError(t, w.Client.Delete(t.Context(), first))
	again := w.awaitPod(func(p *corev1.Pod) bool { return p.UID != first.UID })
	assert.Equal(t, first.Name, again.Name)
	w.awaitStatusReady(app, metav1.ConditionTrue)

	// A83: another template is another Pod.
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.HealthCheck = healthCheck("second") })
	second := w.awaitPod(func(p *corev1.Pod) bool { return p.Name != first.Name })
	assert.Equal(t, "second", second.Spec.Containers[0].Name)
	w.awaitStatusReady(app, metav1.ConditionTrue)

	// A84: no health check, no Pod.
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.HealthCheck = nil })
	w.awaitStatusReady(app, metav1.ConditionUnknown)
	require.True(t, w.Eventually(func() bool { return len(w.pods()) == 0 }))
	hub.AwaitReady(w.World, app)
}

// A84: the Pod goes with the Application, however that is deleted.
func TestHealthCheck_goesWithTheApplication(t *testing.T) {
	for name, tc := range map[string]struct {
		ownership v1alpha1.Ownership
		options   []client.DeleteOption
	}{
		"default":                 {v1alpha1.OwnershipOwn, nil},
		"orphaning":               {v1alpha1.OwnershipOwn, []client.DeleteOption{orphan()}},
		"observing":               {v1alpha1.OwnershipObserve, nil},
		"observing and orphaning": {v1alpha1.OwnershipObserve, []client.DeleteOption{orphan()}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			app := shop()
			app.Spec.Ownership = tc.ownership
			app.Spec.HealthCheck = healthCheck("check")
			w.Create(app)
			w.awaitStatusReady(app, metav1.ConditionTrue)
			w.delete(app, tc.options...)
			require.True(t, w.Eventually(func() bool { return len(w.pods()) == 0 }))
		})
	}
}

// A84: a Pod goes that the garbage collector has taken from its Application before we looked; an
// Application that observes is held for that, and no longer than it has a health check.
func TestHealthCheck_goesThoughItWasOrphaned(t *testing.T) {
	w, stop := newStoppableAgentWorld(t)
	app := shop()
	app.Spec.Ownership = v1alpha1.OwnershipObserve
	app.Spec.HealthCheck = healthCheck("check")
	w.Create(app)
	pod := w.awaitPod(anyPod)
	stop()
	require.NoError(t, w.Client.Delete(t.Context(), app, orphan()))
	require.True(t, w.Eventually(func() bool { return w.Exists(pod, pod.Name) && len(pod.OwnerReferences) == 0 }), "%+v", pod)
	w.startAgent()
	w.AwaitGone(&v1alpha1.Application{}, "shop")
	require.True(t, w.Eventually(func() bool { return len(w.pods()) == 0 }))

	app = shop()
	app.Spec.Ownership = v1alpha1.OwnershipObserve
	app.Spec.HealthCheck = healthCheck("check")
	w.Create(app)
	pod = w.awaitPod(anyPod)
	hub.Await(w.World, app, "the agent does not see the Pod", func(app *v1alpha1.Application) bool {
		return strings.HasPrefix(conditions.GetMessage(app, v1alpha1.ReadyCondition), "Pod "+pod.Name+" has no condition Ready yet")
	})
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.HealthCheck = nil })
	hub.Await(w.World, app, "still held", func(app *v1alpha1.Application) bool { return len(app.Finalizers) == 0 })
	assert.Empty(t, w.pods())
}

// A6, A86, A87: readiness is mirrored as the Pod says it; what says nothing is Unknown.
func TestHealthCheck_isMirrored(t *testing.T) {
	w := newAgentWorld(t) // without a kubelet: the test plays it
	app := shop()
	app.Spec.HealthCheck = healthCheck("check")
	w.Create(app)
	pod := w.awaitPod(anyPod)
	w.awaitStatusReady(app, metav1.ConditionUnknown)
	hub.AwaitReason(w.World, app, v1alpha1.HealthCheckNotReadyReason)

	for _, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown, corev1.ConditionTrue} {
		w.play(pod, corev1.PodRunning, corev1.PodCondition{Type: corev1.PodReady, Status: ready, Message: "says the test"})
		w.awaitStatusReady(app, metav1.ConditionStatus(ready))
	}
	hub.AwaitReady(w.World, app)

	// A84: one that has ended is recreated.
	w.play(pod, corev1.PodFailed, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse})
	w.awaitPod(func(p *corev1.Pod) bool { return p.UID != pod.UID })
	w.awaitStatusReady(app, metav1.ConditionUnknown)
}

// play writes the status of a Pod as a kubelet would.
func (w *world) play(pod *corev1.Pod, phase corev1.PodPhase, conditions ...corev1.PodCondition) {
	w.T.Helper()
	before := pod.DeepCopy()
	pod.Status.Phase, pod.Status.Conditions = phase, conditions
	require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), pod, client.MergeFrom(before)))
}

// A42, C50: quota and Pod Security refuse the Pod in their own words, and when they do not any
// more, it is made.
func TestHealthCheck_refused(t *testing.T) {
	w := newWorld(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	w.Create(quota)
	w.AwaitPodRefused("exceeded quota: none")
	app := shop()
	app.Spec.HealthCheck = healthCheck("check")
	w.Create(app)
	message := hub.AwaitReason(w.World, app, v1alpha1.HealthCheckRefusedReason)
	assert.Contains(t, message, "exceeded quota: none")
	assert.Equal(t, metav1.ConditionUnknown, app.Status.Ready)
	require.NoError(t, w.Client.Delete(context.Background(), quota))
	w.awaitStatusReady(app, metav1.ConditionTrue)

	restricted := newWorld(t)
	ns := &corev1.Namespace{}
	require.True(t, restricted.ExistsIn("", ns, restricted.Namespace))
	hub.Change(restricted.World, ns, func(ns *corev1.Namespace) { ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted" })
	restricted.AwaitPodRefused(`violates PodSecurity "restricted:latest"`)
	other := shop()
	other.Spec.HealthCheck = healthCheck("check")
	restricted.Create(other)
	message = hub.AwaitReason(restricted.World, other, v1alpha1.HealthCheckRefusedReason)
	assert.Contains(t, message, `violates PodSecurity "restricted:latest"`)
}

// A42: a Pod that was refused is tried again, and its refusal reported when nothing else is, also
// where a dependency is missing all the time.
func TestHealthCheck_refusedBesideAMissingDependency(t *testing.T) {
	w := newWorld(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	w.Create(quota)
	w.AwaitPodRefused("exceeded quota: none")
	mark := w.mark()
	app := shop()
	app.Spec.Dependencies = []string{"cart"}
	app.Spec.HealthCheck = healthCheck("check")
	w.Create(app)
	hub.AwaitReason(w.World, app, v1alpha1.DependencyNotInstalledReason)
	require.True(t, w.Eventually(func() bool { return w.refusedPods(mark) > 1 }), "it is not tried again")

	cart := shop()
	cart.Name = "cart"
	w.Create(cart)
	message := hub.AwaitReason(w.World, app, v1alpha1.HealthCheckRefusedReason)
	assert.Contains(t, message, "exceeded quota: none")
	w.delete(cart)
	hub.AwaitReason(w.World, app, v1alpha1.DependencyNotInstalledReason)
	require.NoError(t, w.Client.Delete(context.Background(), quota))
	w.awaitPod(anyPod)
}

// refusedPods counts the Pods that the controller was not allowed to make.
func (w *world) refusedPods(since env.AuditMark) int {
	w.T.Helper()
	refused, err := w.Cluster.Requests(w.T.Context(), since, env.ByUser(hub.Identity), func(r env.Request) bool {
		return r.Namespace == w.Namespace && r.Resource == "pods" && r.Verb == "create" && r.Code == http.StatusForbidden
	})
	require.NoError(w.T, err)
	return len(refused)
}

// A82: names are unique and fit, however long that of the Application is.
func TestHealthCheck_namesFit(t *testing.T) {
	w := newWorld(t)
	names := map[string]bool{}
	for _, suffix := range []string{"a", "b"} {
		app := shop()
		app.Name = strings.Repeat("long.", 30) + suffix
		app.Spec.HealthCheck = healthCheck("check")
		w.Create(app)
		w.awaitStatusReady(app, metav1.ConditionTrue)
	}
	for _, pod := range w.pods() {
		assert.LessOrEqual(t, len(pod.Name), 63)
		names[pod.Name] = true
	}
	assert.Len(t, names, 2)
}

// A84: a Pod that is not wanted any more is removed, also when that happened while no process ran.
func TestHealthCheck_droppedWhileNobodyLooked(t *testing.T) {
	w, stop := newStoppableAgentWorld(t)
	app := shop()
	app.Spec.HealthCheck = healthCheck("check")
	w.Create(app)
	w.awaitPod(anyPod)
	stop()
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.HealthCheck = nil })
	w.startAgent()
	require.True(t, w.Eventually(func() bool { return len(w.pods()) == 0 }))
	hub.AwaitReady(w.World, app)
}

// A82: an Application that is recreated waits until the Pod of the former one is gone, and makes its
// own then.
func TestHealthCheck_ofApplicationMadeAnew(t *testing.T) {
	w := newWorld(t)
	first := shop()
	first.Spec.HealthCheck = healthCheck("check")
	w.Create(first)
	w.awaitStatusReady(first, metav1.ConditionTrue)
	pod := w.awaitPod(anyPod)
	hub.Change(w.World, pod, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/terminates-slowly"} })
	w.delete(first)
	second := shop()
	second.Spec.HealthCheck = healthCheck("check")
	states := w.follow(second)
	w.Create(second)
	message := hub.AwaitReason(w.World, second, v1alpha1.HealthCheckNotReadyReason)
	assert.Equal(t, "Pod "+pod.Name+" is being deleted, and will be recreated", message)

	hub.Change(w.World, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	w.awaitStatusReady(second, metav1.ConditionTrue)
	assert.NotEqual(t, pod.UID, w.awaitPod(anyPod).UID)
	for _, state := range states() {
		assert.NotEqual(t, v1alpha1.HealthCheckRefusedReason, conditions.GetReason(state, v1alpha1.ReadyCondition))
	}
}

// A Pod that we made ourselves is not mistaken for another's, however late the watch shows it.
func TestHealthCheck_watchIsLate(t *testing.T) {
	w, stop := newStoppableAgentWorld(t)
	stop()
	held := &dam{resource: "pods"}
	held.close()
	close(held.open)
	w.startAgent(func(next http.RoundTripper) http.RoundTripper {
		held.next = next
		return held
	})
	other := shop()
	other.Name = "other"
	w.Create(other)
	hub.AwaitReady(w.World, other) // the Pods are listed
	held.close()
	mark := w.mark()
	app := shop()
	app.Spec.HealthCheck = healthCheck("check")
	states := w.follow(app)
	w.Create(app)
	require.True(t, w.Eventually(func() bool {
		return slices.ContainsFunc(w.requests(mark, w.agent()), func(r env.Request) bool { return r.Verb == "get" && r.Resource == "pods" })
	}), "it does not ask whose the Pod is")
	pod := w.awaitPod(anyPod)
	close(held.open)
	w.play(pod, corev1.PodRunning, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	w.awaitStatusReady(app, metav1.ConditionTrue)
	hub.AwaitReady(w.World, app)
	for _, state := range states() {
		assert.NotEqual(t, v1alpha1.HealthCheckRefusedReason, conditions.GetReason(state, v1alpha1.ReadyCondition))
	}
}
