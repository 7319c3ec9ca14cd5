package applicationinstallation

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// errHealthy says that what was to be given up is healthy.
var errHealthy = errors.New("every object is healthy")

// confirm returns nil if what is to be given up is not healthy, and errHealthy if it is. It asks the API
// server: what a watch has shown may be old, if the cluster was lost or the kind may not be watched.
// Another error says why that is not known.
func (d *driver) confirm(ctx context.Context, p plan) error {
	seen, err := d.healthNow(ctx, p)
	switch {
	case err != nil:
		return err
	case seen.Healthy():
		return errHealthy
	default:
		return nil
	}
}

// spared returns the outcome of a rollback that confirm has kept from beginning.
func spared(why string, err error) acted {
	if errors.Is(err, errHealthy) {
		return acted{spared: true}
	}
	return acted{findings: findings{failure: reconcile.Failed(v1alpha1.NotHealthyReason, "%s; not rolled back, because its health could not be checked again: %w", why, err)}, spared: true}
}

// readsAtATime is how many objects of an installation are read at a time.
const readsAtATime = 5

// healthNow reads the health of all that was installed.
func (d *driver) healthNow(ctx context.Context, p plan) (health.Summary, error) {
	items := make([]health.Item, len(p.inventory))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(readsAtATime)
	for i, id := range p.inventory {
		reads.Go(func() error {
			status, message, err := d.readHealth(ctx, id, p.owner)
			items[i] = health.Item{ID: id, Status: status, Message: message}
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return health.Summary{}, err
	}
	return health.Summarize(items), nil
}

// readHealth reads the health of one object, which owner has marked. A kind that the cluster does not
// know has no objects.
func (d *driver) readHealth(ctx context.Context, id manifest.ID, owner apply.Owner) (health.Status, string, error) {
	var object metav1.Object
	mapping, err := watch.Mapping(ctx, d.cluster.Mapper(), schema.GroupKind{Group: id.Group, Kind: id.Kind})
	if err == nil {
		object, err = d.read(ctx, mapping, id)
	}
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		status, message := health.Of(nil)
		return status, message, nil
	case err != nil:
		return health.Unknown, "", fmt.Errorf("read %s: %w", id, err)
	case object.GetAnnotations()[v1alpha1.OwnerAnnotation] != owner.String():
		return health.Unknown, owner.Describe(object), nil
	}
	if whole, ok := object.(*unstructured.Unstructured); ok {
		status, message := health.Of(whole)
		return status, message, nil
	}
	status, message := health.OfMetadata(object.GetDeletionTimestamp() != nil)
	return status, message, nil
}

// read reads an object; where its health depends on nothing else, only its metadata.
func (d *driver) read(ctx context.Context, mapping *meta.RESTMapping, id manifest.ID) (metav1.Object, error) {
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace = id.Namespace
	}
	if health.HasStatus(mapping.GroupVersionKind.GroupKind()) {
		return d.cluster.Dynamic().Resource(mapping.Resource).Namespace(namespace).Get(ctx, id.Name, metav1.GetOptions{})
	}
	return d.cluster.Metadata().Resource(mapping.Resource).Namespace(namespace).Get(ctx, id.Name, metav1.GetOptions{})
}
