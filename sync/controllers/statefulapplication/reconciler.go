package statefulapplication

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=statefulapplications,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=statefulapplications/status,verbs=get;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=statefulapplicationclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshots;applicationsnapshotcontents,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applications,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationinstallations,verbs=get;list;watch;create;delete
// Who restores an installation may install it: the webhook asks. This controller then must be able to.
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationdefinitions,verbs=install
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list
// +kubebuilder:rbac:groups="",resources=configmaps;secrets;services;serviceaccounts;pods;replicationcontrollers,verbs=get;create;delete
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets;replicasets,verbs=get;create;delete
// +kubebuilder:rbac:groups=batch,resources=jobs;cronjobs,verbs=get;create;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;create;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;create;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;create;delete
// Who restores may create what the Roles grant: the webhook asks. This controller then must be able to.
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles,verbs=get;create;delete;escalate;bind
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;create;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=bind
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots;volumesnapshotcontents,verbs=get;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Definitions reads what snapshots hold, which a pass needs until it ends; *metadata.Store does.
type Definitions interface {
	Borrow(ctx context.Context, namespace string, handle v1alpha1.MetadataHandle) (objects []*unstructured.Unstructured, done func(), err error)
}

// Reconciler reconciles the StatefulApplications of the cluster that it runs in. All fields are
// required.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	// Reader reads from the API server: users' objects are not cached.
	Reader      client.Reader
	Definitions Definitions

	kernel *kernel.Kernel
}

// Back-off of what has failed.
const (
	minBackoff = time.Second
	maxBackoff = 2 * time.Minute
)

// Reconcile restores an application that has not been restored, and otherwise says whether it is there.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := &v1alpha1.StatefulApplication{}
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !restored(obj) {
		if err := r.kernel.Refresh(ctx, r.Reader, obj); err != nil { // one that is restored is not restored again
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	pass := r.kernel.Begin(r.Client, r.Recorder, obj)
	if !obj.DeletionTimestamp.IsZero() {
		return r.remove(ctx, pass, obj)
	}
	class, unknown := r.classOf(ctx, obj)
	switch {
	case class != nil && class.Handler != v1alpha1.DataHandler, failed(obj):
		return ctrl.Result{}, nil
	case restored(obj) && controllerutil.ContainsFinalizer(obj, v1alpha1.Finalizer):
		if err := kernel.RemoveFinalizer(ctx, r.Client, obj); err != nil { // a process ended just before that
			return ctrl.Result{}, err
		}
		pass = r.kernel.Begin(r.Client, r.Recorder, obj)
	case !restored(obj) && unknown == nil && !controllerutil.ContainsFinalizer(obj, v1alpha1.Finalizer):
		if err := kernel.AddFinalizer(ctx, r.Client, obj); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		pass = r.kernel.Begin(r.Client, r.Recorder, obj)
	}
	outcome, err := r.reconcile(ctx, pass, obj, class, unknown)
	result, err := pass.Finish(ctx, outcome, err)
	if err == nil && phase(obj) == v1alpha1.RestoreCompleted {
		err = kernel.RemoveFinalizer(ctx, r.Client, obj)
	}
	return result, err
}

// reconcile takes the object as far as it gets. unknown is why its class is not known.
func (r *Reconciler) reconcile(ctx context.Context, pass *kernel.Pass, obj *v1alpha1.StatefulApplication, class *v1alpha1.StatefulApplicationClass, unknown error) (kernel.Outcome, error) {
	if err := r.findLastSnapshot(ctx, obj); err != nil {
		return kernel.Outcome{}, err
	}
	switch {
	case unknown != nil:
		return kernel.Outcome{}, unknown
	case restored(obj):
		return r.judge(ctx, obj)
	}
	w := &work{Reconciler: r, obj: obj, pass: pass, class: class}
	return w.run(ctx)
}

// restored reports whether nothing is to be restored, or nothing any more.
func restored(obj *v1alpha1.StatefulApplication) bool {
	return obj.Spec.Source == nil || phase(obj) == v1alpha1.RestoreCompleted
}

// failed reports whether the restore was given up; the condition then says why.
func failed(obj *v1alpha1.StatefulApplication) bool { return phase(obj) == v1alpha1.RestoreFailed }

// begun reports whether objects may have been created.
func begun(obj *v1alpha1.StatefulApplication) bool {
	p := phase(obj)
	return p == v1alpha1.RestoreClaims || p == v1alpha1.RestoreObjects
}

func phase(obj *v1alpha1.StatefulApplication) v1alpha1.RestorePhase {
	if obj.Status.Restore == nil {
		return ""
	}
	return obj.Status.Restore.Phase
}

// work is a pass over an application that is restored.
type work struct {
	*Reconciler

	obj   *v1alpha1.StatefulApplication
	pass  *kernel.Pass
	class *v1alpha1.StatefulApplicationClass
	source
}

// run carries out one step after the other, until one has to wait. Each returns the phase that follows; its
// own if it has to wait.
func (w *work) run(ctx context.Context) (kernel.Outcome, error) {
	steps := map[v1alpha1.RestorePhase]func(context.Context) (v1alpha1.RestorePhase, kernel.Outcome, error){
		v1alpha1.RestorePending: w.prepare,
		v1alpha1.RestoreClaims:  w.createClaims,
		v1alpha1.RestoreObjects: w.createObjects,
	}
	defer w.giveBack()
	if err := w.load(ctx); err != nil {
		return kernel.Outcome{}, err
	}
	for {
		restore := w.obj.Status.Restore
		step := steps[restore.Phase]
		if step == nil {
			return w.judge(ctx, w.obj)
		}
		next, outcome, err := step(ctx)
		if err != nil || next == restore.Phase {
			return outcome, err
		}
		restore.Phase = next
		if err := w.pass.Write(ctx); err != nil {
			return kernel.Outcome{}, fmt.Errorf("record phase %s: %w", next, err)
		}
	}
}

// giveBack ends the use of what was loaded.
func (w *work) giveBack() {
	if w.done != nil {
		w.done()
	}
}
