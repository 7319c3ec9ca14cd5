package valuesschema

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/values/schema"
)

// maxStored is how large the schemas of one definition may be together, packed. A ConfigMap takes not
// much more.
const maxStored = 900 << 10

// readStored finds out, once, which schemas the ConfigMap of a definition has: it may have been deleted
// while there was no watch.
func (r *Reconciler) readStored(ctx context.Context, definition *v1alpha1.ApplicationDefinition, s *session) error {
	if s.stored != nil {
		return nil
	}
	found, err := r.stored(ctx, definition)
	if err != nil {
		return err
	}
	s.stored = map[string]bool{}
	for digest := range found.BinaryData {
		s.stored[digest] = true
	}
	return nil
}

// stored returns the ConfigMap of a definition; an empty one if there is none.
func (r *Reconciler) stored(ctx context.Context, definition *v1alpha1.ApplicationDefinition) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: r.SystemNamespace, Name: schema.ConfigMapName(definition.Name)}
	if err := r.Client.Get(ctx, key, found); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read schemas: %w", err)
	}
	return found, nil
}

// store writes the schemas that are wanted, in the order of the versions, as far as they fit.
func (r *Reconciler) store(ctx context.Context, definition *v1alpha1.ApplicationDefinition, s *session, wanted []v1alpha1.ValuesSchema) error {
	before, err := r.stored(ctx, definition)
	if err != nil {
		return err
	}
	packed := map[string][]byte{}
	for _, got := range s.learned {
		packed[got.entry.Digest] = got.packed
	}
	data, size := map[string][]byte{}, 0
	for i := range wanted {
		digest := wanted[i].Digest
		if _, ok := data[digest]; ok || digest == "" {
			continue
		}
		schemaOf := packed[digest]
		if schemaOf == nil {
			schemaOf = before.BinaryData[digest]
		}
		if schemaOf == nil {
			s.stored = nil
			return fmt.Errorf("schema of version %s was deleted from ConfigMap %s, learning it again", wanted[i].Version, before.Name)
		}
		if size+len(schemaOf) > maxStored {
			wanted[i].Digest, wanted[i].Message = "", "values are checked only when the chart is rendered: the schemas of all versions take too much room together"
			continue
		}
		data[digest], size = schemaOf, size+len(schemaOf)
	}
	if err := r.write(ctx, definition, before, data); err != nil {
		return err
	}
	s.stored = map[string]bool{}
	for digest := range data {
		s.stored[digest] = true
	}
	return nil
}

// write writes the ConfigMap, if it differs from what it was before. It goes with the definition.
func (r *Reconciler) write(ctx context.Context, definition *v1alpha1.ApplicationDefinition, before *corev1.ConfigMap, data map[string][]byte) error {
	if len(data) == 0 && before.UID == "" {
		return nil
	}
	wanted := schema.ConfigMap(r.SystemNamespace, definition, data)
	if before.UID == "" {
		err := r.Client.Create(ctx, wanted, client.FieldOwner(v1alpha1.FieldManager))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("write schemas: %w", err)
		}
		return nil
	}
	changed := before.DeepCopy()
	changed.BinaryData, changed.OwnerReferences, changed.Labels = wanted.BinaryData, wanted.OwnerReferences, wanted.Labels
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(before), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("write schemas: %w", err)
	}
	return nil
}
