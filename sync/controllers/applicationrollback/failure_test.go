package applicationrollback_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// S82, C22: whatever fails, in whichever phase, the application is as it was before, and that is said with
// the reason.
func TestRollback_revertsWhatFails(t *testing.T) {
	t.Parallel()
	const soon = 3 * time.Second
	for name, test := range map[string]struct {
		reason string
		limits limits
		// harm makes the rollback fail, after the snapshot was taken.
		harm func(*world)
		// mend is called once the rollback is being reverted.
		mend    func(*world)
		message string
	}{
		"scaling down": {
			reason:  "a Pod that nobody can scale uses a volume",
			limits:  limits{v1alpha1.RollbackScalingDown: soon},
			harm:    func(w *world) { w.Create(volumes.Pod(w.Namespace, "visitor", "data-db-0")) },
			message: `ScalingDown: not done within 3s: waited for Pod "visitor" to end, which uses a volume of the application`,
		},
		"restoring": {
			reason: "the driver cannot restore the volume",
			limits: limits{v1alpha1.RollbackRestoring: soon},
			harm: func(w *world) {
				w.T.Cleanup(w.Driver.Inject(csidriver.Fault{Method: "CreateVolume", Namespace: w.Namespace, Code: codes.Internal, Message: "the pool is full"}))
			},
			message: `Restoring: not done within 3s: waited for PersistentVolumeClaim "data-db-0-restore-`,
		},
		"swapping": {
			reason: "somebody keeps the old claim from being deleted",
			limits: limits{v1alpha1.RollbackSwapping: soon},
			harm: func(w *world) {
				hub.Change(w.World, w.claim("data-db-0"), func(c *corev1.PersistentVolumeClaim) { controllerutil.AddFinalizer(c, "example.com/test") })
			},
			mend: func(w *world) {
				hub.Change(w.World, w.claim("data-db-0"), func(c *corev1.PersistentVolumeClaim) { controllerutil.RemoveFinalizer(c, "example.com/test") })
			},
			message: `Swapping: not done within 3s: waited for PersistentVolumeClaim "data-db-0" to be deleted`,
		},
		"applying": {
			reason: "an object cannot be created again",
			harm: func(w *world) {
				hub.Change(w.World, w.settings(), func(c *corev1.ConfigMap) { c.Immutable = new(true) })
				w.Create(&corev1.ResourceQuota{
					ObjectMeta: metav1.ObjectMeta{Name: "none"},
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/services": resource.MustParse("0")}},
				})
				w.AwaitServiceRefused()
			},
			message: `Applying: create Service "db"`,
		},
		"checking": {
			reason: "the application of the snapshot never becomes ready",
			limits: limits{v1alpha1.RollbackChecking: soon},
			harm: func(w *world) {
				hub.Change(w.World, w.application(), func(a *v1alpha1.Application) { a.Spec.Dependencies = nil })
				require.NoError(w.T, w.Client.Delete(w.T.Context(), &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "other"}}))
			},
			message: `Checking: not done within 3s: waited for Application "db" to become ready`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newIdleWorld(t)
			w.alone(test.limits)
			w.Create(&v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1alpha1.ApplicationSpec{
				Type: "other", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
			}})
			w.install(volumes.ImmediateClass)
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db", Labels: labels()}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
			w.Create(service)
			hub.Change(w.World, w.application(), func(a *v1alpha1.Application) {
				a.Spec.Dependencies = []string{"other"}
				a.Spec.Components = append(a.Spec.Components, v1alpha1.ApplicationComponent{Kind: "Service"})
			})
			hub.AwaitReady(w.World, w.application())
			w.write(before)
			w.snapshot("one")
			require.NoError(t, w.Client.Delete(t.Context(), service))
			w.write(after)
			test.harm(w)
			old := w.claim("data-db-0").Spec.VolumeName

			r := w.rollback("back", "one")
			w.Create(r)
			if test.mend != nil {
				w.awaitPhase(r, v1alpha1.RollbackReverting)
				test.mend(w)
			}
			w.awaitPhase(r, v1alpha1.RollbackReverted)
			assert.Contains(t, r.Status.Error.Message, test.message, test.reason)
			assert.Equal(t, v1alpha1.RollbackRevertedReason, conditions.GetReason(r, v1alpha1.ReadyCondition))
			w.requireState(after)
			assert.Equal(t, old, w.claim("data-db-0").Spec.VolumeName)
			w.requireNothingBeside()
			assert.False(t, w.Exists(&corev1.Service{}, "db"), "what was not there before is gone again")
			settings := w.settings()
			require.True(t, w.Exists(settings, "settings"))
			_, held := hold.By(settings)
			assert.False(t, held)
		})
	}
}

// AwaitServiceRefused waits until the quota is in force.
func (w *world) AwaitServiceRefused() {
	w.T.Helper()
	require.True(w.T, w.Eventually(func() bool {
		probe := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "probe"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		return w.Client.Create(w.T.Context(), probe, client.DryRunAll) != nil
	}))
}

// C22: if the state before cannot be reached either, it is said what is where, and it is tried again when
// a user requests it.
func TestRollback_saysWhatIsWhere(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t)
	w.alone(limits{v1alpha1.RollbackChecking: 3 * time.Second})
	w.install(volumes.ImmediateClass)
	w.write(before)
	hub.Change(w.World, w.application(), func(a *v1alpha1.Application) { a.Spec.Dependencies = []string{"missing"} })
	w.snapshot("one")
	hub.Change(w.World, w.application(), func(a *v1alpha1.Application) { a.Spec.Dependencies = nil })
	w.write(after)
	old := w.claim("data-db-0").Spec.VolumeName
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackChecking)
	safety := &v1alpha1.ApplicationSnapshot{}
	require.True(t, w.Exists(safety, r.Status.SafetySnapshot))
	definitions := &corev1.SecretList{}
	require.NoError(t, w.Client.List(t.Context(), definitions, client.InNamespace(hub.SystemNamespace), client.MatchingLabels{v1alpha1.SnapshotUIDLabel: string(safety.UID)}))
	require.Len(t, definitions.Items, 1)
	definition := &definitions.Items[0]
	require.NoError(t, w.Client.Delete(t.Context(), definition))

	w.awaitPhase(r, v1alpha1.RollbackFailed)
	for _, words := range []string{"the volumes are as before, but the objects could not be put back", safety.Name, old, `Application "db" to become ready`, v1alpha1.ReconcileAtAnnotation} {
		assert.Contains(t, conditions.GetMessage(r, v1alpha1.ReadyCondition), words)
	}
	assert.Equal(t, after, w.sh("cat data/file"))

	definition.ResourceVersion, definition.UID = "", ""
	w.Create(definition)
	hub.Reconcile(w.World, r)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
}
