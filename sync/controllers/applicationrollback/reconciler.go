package applicationrollback

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationrollbacks,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationrollbacks/status,verbs=get;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshots,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshotcontents;applicationsnapshotclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=statefulapplications,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=statefulapplications/status,verbs=get;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applications,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationinstallations,verbs=get;patch
// +kubebuilder:rbac:groups="",resources=configmaps;secrets;services;serviceaccounts,verbs=get;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;create;update;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments/scale;statefulsets/scale,verbs=get;update
// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=get;create;update;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;create;update;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;create;update;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;create;update;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles,verbs=get;create;update;patch;delete;bind;escalate
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;create;update;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=bind
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Contents finds what belongs to an application; *contents.Finder does.
type Contents interface {
	Find(ctx context.Context, namespace, application string) (*contents.Contents, error)
}

// Reconciler reconciles the ApplicationRollbacks of the cluster that it runs in. Fields without a
// comment are required.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Contents Contents
	// Definitions are those that snapshots have stored.
	Definitions *metadata.Store
	// Live reads and writes what belongs to applications, without a cache. Default: a client of the
	// manager's cluster.
	Live client.Client
	// Limits say how long a phase may take, in place of the defaults.
	Limits map[v1alpha1.RollbackPhase]time.Duration

	kernel   *kernel.Kernel
	watching *watching
	// started is when this process began to reconcile.
	started time.Time
	// starting is held from looking for other rollbacks of an application until the status says that
	// this one runs.
	starting sync.Mutex
}

// Back-off after an error.
const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

// limits say how long a phase may take; others take as long as they take.
var limits = map[v1alpha1.RollbackPhase]time.Duration{
	v1alpha1.RollbackSaving:      2 * time.Hour,
	v1alpha1.RollbackHolding:     30 * time.Minute, // it waits for hooks and drivers
	v1alpha1.RollbackScalingDown: 10 * time.Minute,
	v1alpha1.RollbackRestoring:   time.Hour,
	v1alpha1.RollbackSwapping:    10 * time.Minute,
	v1alpha1.RollbackApplying:    10 * time.Minute,
	v1alpha1.RollbackScalingUp:   5 * time.Minute,
	v1alpha1.RollbackChecking:    15 * time.Minute,
	v1alpha1.RollbackReverting:   30 * time.Minute,
}

func (r *Reconciler) limit(phase v1alpha1.RollbackPhase) time.Duration {
	if limit := r.Limits[phase]; limit > 0 {
		return limit
	}
	return limits[phase]
}

// Reconcile takes an ApplicationRollback as far as it comes before it has to wait.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := &v1alpha1.ApplicationRollback{}
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		r.watching.leave(req)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.kernel.Refresh(ctx, r.Live, obj); err != nil {
		r.watching.leave(req)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if mine, err := r.isOurs(ctx, obj); err != nil || !mine {
		return ctrl.Result{}, err
	}
	if obj.DeletionTimestamp.IsZero() {
		if err := kernel.AddFinalizer(ctx, r.Client, obj); err != nil {
			return ctrl.Result{}, err
		}
	}
	pass := r.kernel.Begin(r.Client, r.Recorder, obj)
	s := &scope{Reconciler: r, obj: obj, pass: pass}
	defer s.giveBack()
	outcome, err := r.advance(ctx, s)
	if err == nil && s.gone {
		r.watching.leave(req)
		err := kernel.RemoveFinalizer(ctx, r.Client, obj)
		if err == nil {
			r.kernel.Forget(obj.UID)
		}
		return ctrl.Result{}, err
	}
	if isUnderWay(obj.Status.Phase) || s.watches {
		r.watching.want(req)
	} else {
		r.watching.leave(req)
	}
	return pass.Finish(ctx, outcome, err)
}

// isOurs reports whether a rollback is for this controller: its class says so, or it was begun. One that
// was not begun and whose class does not exist has no controller.
func (r *Reconciler) isOurs(ctx context.Context, obj *v1alpha1.ApplicationRollback) (bool, error) {
	if obj.Status.Phase != "" {
		return true, nil
	}
	class := &v1alpha1.ApplicationSnapshotClass{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: obj.Spec.SnapshotClassName}, class)
	if apierrors.IsNotFound(err) {
		return true, nil // the preflight says so
	}
	if err != nil {
		return false, fmt.Errorf("get ApplicationSnapshotClass %q: %w", obj.Spec.SnapshotClassName, err)
	}
	return class.Snapshotter == v1alpha1.DataHandler, nil
}
