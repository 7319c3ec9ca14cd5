package fleet

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Site identifies a cluster, also among clusters that were listed again.
type Site struct {
	// Key is that of Cluster.
	Key types.NamespacedName
	// Name is what people call it.
	Name string
}

// Site returns what identifies the cluster.
func (c *Cluster) Site() Site { return Site{c.Key, c.Name()} }

// Watch reports the objects of a core resource in a namespace of a cluster, without their managedFields: those that
// there are, and each change until ctx ends; gone says that the API server no longer has one. A watch that is
// interrupted is begun again. Watch returns an error if it cannot connect, or as soon as the API server denies the
// request; tell is called by one goroutine, and not after Watch has returned.
func Watch[T client.Object](ctx context.Context, c *Cluster, resource, namespace string, of T, tell func(found T, gone bool)) error {
	config, httpClient, err := c.Streaming()
	if err != nil {
		return err
	}
	typed, err := corev1client.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	informer := cache.NewSharedInformer(cache.NewListWatchFromClient(typed.RESTClient(), resource, namespace, fields.Everything()), of, 0)
	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	_, added := informer.AddEventHandler(handler(tell))
	handled := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			stop(fmt.Errorf("watch %s in namespace %s of cluster %s: %w", resource, namespace, c.Name(), err))
		} // the reflector tries all others again
	})
	if err := errors.Join(added, handled, informer.SetTransform(withoutManagedFields)); err != nil {
		return fmt.Errorf("watch %s: %w", resource, err)
	}
	informer.RunWithContext(watching)
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(watching)
}

func handler[T client.Object](tell func(found T, gone bool)) cache.ResourceEventHandler {
	typed := func(found any, gone bool) {
		if object, ok := found.(T); ok { // not of one that was deleted while there was no watch
			tell(object, gone)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(found any) { typed(found, false) },
		UpdateFunc: func(_, now any) { typed(now, false) },
		DeleteFunc: func(found any) { typed(found, true) },
	}
}

// withoutManagedFields drops a field that is not read.
func withoutManagedFields(found any) (any, error) {
	if object, ok := found.(client.Object); ok {
		object.SetManagedFields(nil)
	}
	return found, nil
}
