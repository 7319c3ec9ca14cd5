package applicationinstallation

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/cluster/watch"
)

// offer says whether a cluster gets a definition.
type offer int

const (
	// withheld: for the cluster, the definition does not exist.
	withheld offer = iota
	// kept: the definition is not offered any more, but an installation was begun while it was.
	kept
	// offered: the definition is for every cluster, or its clusterSelector matches this one.
	offered
)

// notOffered is the same whether there is no such definition or it is for other clusters: what is not
// offered to a cluster is not shown to it, not even that it exists.
const notOffered = "the hub offers no ApplicationDefinition %q to this cluster"

// begun is what the hub keeps of one cluster: the definitions that installations were begun of while
// they were offered, in the status of its KubernetesCluster. The installations themselves prove
// nothing, because users who may write their status in the user cluster can write anything there.
type begun struct {
	mu sync.Mutex
	// version and definitions are those of the last write, which the cache may not show yet.
	version     string
	definitions map[string]string
}

// current returns the KubernetesCluster with what was written last if it is older than that. It is a
// copy as far as that is changed.
func (b *begun) current(kc v1alpha1.KubernetesCluster) v1alpha1.KubernetesCluster {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.update(kc)
}

// update is current for who holds the lock.
func (b *begun) update(kc v1alpha1.KubernetesCluster) v1alpha1.KubernetesCluster {
	if b.version != "" && watch.Older(kc.ResourceVersion, b.version) {
		kc.Status.Definitions = b.definitions
	}
	return kc
}

// kubernetesCluster returns the KubernetesCluster of the cluster, which must not be modified; an empty
// one if it is gone.
func (d *driver) kubernetesCluster(ctx context.Context) (v1alpha1.KubernetesCluster, error) {
	kc := v1alpha1.KubernetesCluster{}
	if err := d.Hub.Get(ctx, d.cluster.Name(), &kc, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return kc, fmt.Errorf("get cluster: %w", err)
	}
	return d.begun.current(kc), nil
}

// offerOf returns whether the cluster gets a definition. One whose clusterSelector is invalid is
// offered to none.
func (d *driver) offerOf(ctx context.Context, definition *v1alpha1.ApplicationDefinition) (offer, error) {
	kc, err := d.kubernetesCluster(ctx)
	if err != nil {
		return withheld, err
	}
	selector, err := validation.OfferSelector(definition)
	switch {
	case err == nil && selector.Matches(labels.Set(kc.Labels)):
		return offered, nil
	case kc.HasBegun(definition, d.cluster.UID()):
		return kept, nil
	default:
		return withheld, nil
	}
}

// recordBegun records on the hub that an installation of an offered definition is begun in the
// cluster, before anything is fetched for it: once, however many installations follow.
func (d *driver) recordBegun(ctx context.Context, definition *v1alpha1.ApplicationDefinition) error {
	kc, err := d.kubernetesCluster(ctx)
	if err != nil || kc.UID == "" || kc.HasBegun(definition, d.cluster.UID()) {
		return err
	}
	d.begun.mu.Lock()
	defer d.begun.mu.Unlock()
	if kc = d.begun.update(kc); kc.HasBegun(definition, d.cluster.UID()) {
		return nil // another installation was faster
	}
	if len(kc.Status.Definitions) >= v1alpha1.MaxBegunDefinitions {
		ctrl.LoggerFrom(ctx).Info("too many definitions to record in the status of the KubernetesCluster: installations are not kept if it is not offered this one any more",
			"definition", definition.Name, "limit", v1alpha1.MaxBegunDefinitions)
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": kc.UID}, // not of another one of its name
		"status":   map[string]any{"definitions": map[string]any{definition.Name: definition.UID}},
	})
	if err != nil {
		return fmt.Errorf("encode record of %s: %w", definition.Name, err)
	}
	written := &v1alpha1.KubernetesCluster{}
	written.Namespace, written.Name = kc.Namespace, kc.Name
	if err := d.Hub.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("record that %s is installed: %w", definition.Name, err)
	}
	d.begun.version, d.begun.definitions = written.ResourceVersion, written.Status.Definitions
	return nil
}

// forgets reports whether a KubernetesCluster has lost a definition that installations were begun of:
// those that are there all the same have it recorded again.
func forgets(before, after *v1alpha1.KubernetesCluster) bool {
	for name := range before.Status.Definitions {
		if _, ok := after.Status.Definitions[name]; !ok {
			return true
		}
	}
	return false
}
