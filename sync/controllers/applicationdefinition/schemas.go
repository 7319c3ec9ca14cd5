package applicationdefinition

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/values/schema"
)

// +kubebuilder:rbac:groups="",namespace=waybill-system,resources=configmaps,verbs=get

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// schemasChanged reports whether other schemas are known than before: copies get them, too.
func schemasChanged(e event.UpdateEvent) bool {
	before, isOurs := e.ObjectOld.(*v1alpha1.ApplicationDefinition)
	after, areOurs := e.ObjectNew.(*v1alpha1.ApplicationDefinition)
	return isOurs && areOurs && !apiequality.Semantic.DeepEqual(before.Status.ValuesSchemas, after.Status.ValuesSchemas)
}

// putSchemas writes the schemas of a definition to the system namespace of the cluster, for admission
// there. Where there is no such namespace, or the hub may not write there, values are checked when
// charts are rendered, and the copy is as good without.
func (c *copier) putSchemas(ctx context.Context, copied *metav1.PartialObjectMetadata, offered *form) error {
	packed, err := c.r.schemas(ctx, copied.Name, offered)
	if err != nil || len(packed) == 0 {
		return err
	}
	wanted := schema.ConfigMap(c.r.SystemNamespace, copied, packed)
	body, err := json.Marshal(wanted)
	if err != nil {
		return fmt.Errorf("write schemas: %w", err)
	}
	options := metav1.PatchOptions{FieldManager: v1alpha1.FieldManager, Force: ptr.To(true)}
	_, err = c.cluster.Dynamic().Resource(configMaps).Namespace(wanted.Namespace).Patch(ctx, wanted.Name, types.ApplyPatchType, body, options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("write schemas: %w", err)
	}
	return nil
}

// schemas reads the schemas that an offer names, as far as they are there. A chart without one has no digest.
func (r *Reconciler) schemas(ctx context.Context, name string, offered *form) (map[string][]byte, error) {
	if !slices.ContainsFunc(offered.schemas, func(s v1alpha1.ValuesSchema) bool { return s.Digest != "" }) {
		return nil, nil
	}
	found := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.SystemNamespace, Name: schema.ConfigMapName(name)}, found)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read schemas: %w", err)
	}
	packed := map[string][]byte{}
	for i := range offered.schemas {
		if content, ok := found.BinaryData[offered.schemas[i].Digest]; ok {
			packed[offered.schemas[i].Digest] = content
		}
	}
	return packed, nil
}
