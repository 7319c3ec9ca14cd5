package applicationsnapshot

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/data/snapshot/volumes"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshots,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshotcontents,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshots/status;applicationsnapshotcontents/status,verbs=get;patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshots/finalizers;applicationsnapshotcontents/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshotclasses;statefulapplications;applicationrollbacks;hookactions;applications,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationinstallations;gitsyncs;kubernetesapplications;kubernetesapplicationresources,verbs=get;list
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationinstallations,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=patch
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=executionhooks,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotclasses,verbs=get;list
// +kubebuilder:rbac:groups=groupsnapshot.storage.k8s.io,resources=volumegroupsnapshots,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=groupsnapshot.storage.k8s.io,resources=volumegroupsnapshotclasses,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps;services;serviceaccounts;replicationcontrollers,verbs=get;list
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets;replicasets,verbs=get;list
// +kubebuilder:rbac:groups=apps,resources=deployments/scale;statefulsets/scale,verbs=get;update
// +kubebuilder:rbac:groups=batch,resources=jobs;cronjobs,verbs=get;list
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;list
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Finder finds what belongs to an application; *contents.Finder is one.
type Finder interface {
	Find(ctx context.Context, namespace, application string) (*contents.Contents, error)
}

// Store keeps definitions; *metadata.Store is one.
type Store interface {
	Save(ctx context.Context, uid types.UID, kind v1alpha1.MetadataHandleType, objects []*unstructured.Unstructured) (v1alpha1.MetadataHandle, error)
	Load(ctx context.Context, handle v1alpha1.MetadataHandle) ([]*unstructured.Unstructured, error)
	Delete(ctx context.Context, handle v1alpha1.MetadataHandle) error
}

// Reconciler reconciles the ApplicationSnapshots of the cluster that it runs in, and their contents.
// Fields without a comment are required.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Finder   Finder
	Store    Store
	// Direct reads our own kinds from the API server, where a cache may not know yet what was written.
	Direct client.Reader
	// Workers is how many snapshots are reconciled at a time. Default: 32.
	Workers int
	// Parallel is how many applications are snapshotted at a time, until each is released: the others wait
	// before anything is done to them. Of one namespace, at most half of them are. Default: 16.
	Parallel int
	// Turn is how long a snapshot keeps others waiting at most. Default: 5s.
	Turn time.Duration
	// Waits is how many snapshots watch Pods until these have ended; the others look every few seconds. Of one
	// namespace, at most half of them do. Default: 100.
	Waits int
	// Patience is how long a VolumeSnapshot may be in error while the application is quiesced: drivers try
	// again. Default: 30s.
	Patience time.Duration

	kernel   *kernel.Kernel
	contents *kernel.Kernel
	sessions kernel.Sessions[types.UID, session]
	gate     *gate
	cluster  client.WithWatch
	volumes  *volumes.Volumes
	watch    *volumes.Watch
	waker    kernel.Waker[ctrl.Request]
	unused   *kernel.Jobs[kernel.Key, error]
}

// session is what is remembered of a snapshot that is being taken. All of it can be found out again.
type session struct {
	name types.NamespacedName
	// resting is true while the application may be quiesced: then its passes come before those of others.
	resting atomic.Bool
	// watching is true while the Pods are watched that are to end.
	watching atomic.Bool
	// contents of the application, until its definitions are stored.
	contents *contents.Contents
	// rollbacks are the versions of those of the application before its contents were looked up, and behind is true if
	// the cache did not know them.
	rollbacks string
	behind    bool
	// outline is what is needed of them afterwards, as of when they were captured.
	outline *contents.Contents
	// summary of the definitions that were stored; nil if another process has.
	summary *summary
	// shown is when the status was last written on purpose.
	shown time.Time
	// cuts are the VolumeSnapshotContents that the volumes were cut as, as far as this process knows, by the UIDs of the
	// VolumeSnapshots.
	cuts map[types.UID]types.UID
	// failing says since when a VolumeSnapshot has been in error, by claim.
	failing map[string]time.Time
}

// Back-off of a snapshot that could not be reconciled.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
)

const (
	defaultWorkers  = 2 * defaultParallel // so that there is one for each application that is quiesced
	defaultParallel = 16                  // with fewer, drivers idle; with more, each application is quiesced for longer
	defaultWaits    = 100
	defaultTurn     = 5 * time.Second
	defaultPatience = 30 * time.Second
)

// Reconcile takes a snapshot a step further, as far as it can go now.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := &v1alpha1.ApplicationSnapshot{}
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{r: r, obj: obj}
	if obj.DeletionTimestamp.IsZero() {
		if foreign, err := s.begin(ctx); foreign || err != nil {
			return ctrl.Result{}, err
		}
	}
	s.pass = r.kernel.Begin(r.Client, r.Recorder, obj)
	outcome, err := s.further(ctx)
	if outcome == nil && err == nil {
		return ctrl.Result{}, nil
	}
	return s.pass.Finish(ctx, ptr.Deref(outcome, kernel.Outcome{}), err)
}

// further takes the snapshot as far as it can go now. It returns nil if there is nothing left to be said.
func (s *scope) further(ctx context.Context) (*kernel.Outcome, error) {
	if !s.obj.DeletionTimestamp.IsZero() {
		return s.finalize(ctx)
	}
	if !s.ended() {
		s.remember()
		outcome, err := s.run(ctx)
		return &outcome, err
	}
	outcome, err := s.end(ctx)
	return &outcome, err
}

// remember makes the session of the snapshot that of the pass.
func (s *scope) remember() {
	s.session = s.r.sessions.Of(s.obj.UID, func() *session {
		return &session{name: client.ObjectKeyFromObject(s.obj), failing: map[string]time.Time{}}
	})
}

// forget drops what is remembered of a snapshot that needs no more than its object.
func (r *Reconciler) forget(obj *v1alpha1.ApplicationSnapshot) {
	r.unused.Drop(kernel.KeyOf(obj))
	r.sessions.Drop(obj.UID)
	r.leave(obj.UID)
}
