package inject

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/membership"
)

// cacheRetry is the interval between attempts to start a cache while the cluster does not know the
// kind.
const cacheRetry = 2 * time.Second

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applications,verbs=get;list;watch

// applications holds the Applications of the cluster in memory.
type applications struct {
	index  membership.Index
	synced atomic.Bool

	// changed is called when the set of listed kinds changes.
	changed func()
}

// Trim drops from a cached Application what membership does not need, and leaves other objects as
// they are. It is not a transform for Applications alone, because a cache with such a transform
// cannot be created before the cluster knows the kind.
func Trim(obj any) (any, error) {
	app, ok := obj.(*v1alpha1.Application)
	if !ok {
		return obj, nil
	}
	trimmed := &v1alpha1.Application{
		TypeMeta: app.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: app.Namespace, Name: app.Name, UID: app.UID, Generation: app.Generation,
			ResourceVersion: app.ResourceVersion, DeletionTimestamp: app.DeletionTimestamp,
		},
		Spec: v1alpha1.ApplicationSpec{
			Selector: app.Spec.Selector, Components: app.Spec.Components,
			Dependencies: app.Spec.Dependencies, Ownership: app.Spec.Ownership,
		},
	}
	return trimmed, nil
}

// fill watches Applications as soon as the cluster knows the kind, and returns when all are read.
func (a *applications) fill(ctx context.Context, from cache.Cache) error {
	informer, err := await(ctx, from, &v1alpha1.Application{})
	if err != nil {
		return err
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    a.set(ctx),
		UpdateFunc: a.update(ctx),
		DeleteFunc: a.remove,
	})
	if err != nil {
		return fmt.Errorf("watch applications: %w", err)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		a.synced.Store(true)
		a.changed()
	}
	return nil
}

// await starts the informer of a kind as soon as the cluster knows the kind.
func await(ctx context.Context, from cache.Cache, obj *v1alpha1.Application) (informer cache.Informer, err error) {
	log := ctrl.LoggerFrom(ctx)
	err = wait.PollUntilContextCancel(ctx, cacheRetry, true, func(ctx context.Context) (bool, error) {
		var err error
		if informer, err = from.GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
			log.Info("waiting for kind Application", "error", err.Error())
			return false, nil
		}
		return true, nil
	})
	return informer, err
}

// update returns the handler of updates. It ignores those of status and metadata, so that frequent
// status writes do not delay readers of the index.
func (a *applications) update(ctx context.Context) func(before, now any) {
	set := a.set(ctx)
	return func(before, now any) {
		old, known := before.(*v1alpha1.Application)
		app, ok := now.(*v1alpha1.Application)
		if known && ok && old.UID == app.UID && old.Generation == app.Generation &&
			old.DeletionTimestamp.IsZero() == app.DeletionTimestamp.IsZero() {
			return
		}
		set(now)
	}
}

// set returns a handler that puts an Application into the index. One that does not compile, which
// admission would have refused, matches nothing.
func (a *applications) set(ctx context.Context) func(any) {
	log := ctrl.LoggerFrom(ctx)
	return func(obj any) {
		app, ok := obj.(*v1alpha1.Application)
		if !ok {
			return
		}
		compiled, err := membership.Compile(app)
		listed := false
		if err != nil {
			log.Info("leaving out an Application", "namespace", app.Namespace, "name", app.Name, "error", err.Error())
			listed = a.index.Delete(types.NamespacedName{Namespace: app.Namespace, Name: app.Name})
		} else {
			listed = a.index.Set(compiled)
		}
		if listed {
			a.changed()
		}
	}
}

func (a *applications) remove(obj any) {
	if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if app, ok := obj.(*v1alpha1.Application); ok && a.index.Delete(types.NamespacedName{Namespace: app.Namespace, Name: app.Name}) {
		a.changed()
	}
}
