package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/manifest"
)

const (
	// secretType is the type of the Secrets that hold an inventory.
	secretType corev1.SecretType = "apps.waybill.dev/inventory"

	// maxInStatus is the size in bytes up to which an inventory stays in the status.
	maxInStatus = 200 << 10

	// dataKey is the key of a Secret under which the compressed entries are stored.
	dataKey = "inventory"
)

// Store keeps inventories. Its zero value is ready; it is safe for concurrent use as long as each
// owner is worked on by one goroutine at a time. It remembers what it read from and wrote to
// Secrets, so that only a restart reads them again.
type Store struct {
	known keyed.Map[types.UID, remembered]
}

// remembered is what the Secrets of one owner hold.
type remembered struct {
	secrets []string
	digest  string
	ids     []manifest.ID
}

// Load returns the objects of an inventory. If the inventory is kept in Secrets, they are read from
// the owner's namespace; a Secret that is missing, or does not hold what was written, is an error: an
// inventory with a gap would forget objects forever, and a user who may write Secrets there must not
// decide what is deleted.
func (s *Store) Load(ctx context.Context, c client.Client, owner client.Object, inventory v1alpha1.Inventory) ([]manifest.ID, error) {
	if len(inventory.Secrets) == 0 {
		return Decode(inventory.Entries)
	}
	if ids, found := s.recall(owner, inventory); found {
		return ids, nil
	}
	chunks := make([][]byte, len(inventory.Secrets))
	for i, name := range inventory.Secrets {
		var err error
		if chunks[i], err = readSecret(ctx, c, owner, name); err != nil {
			return nil, fmt.Errorf("read inventory: %w", err)
		}
	}
	// Without a digest, an earlier version of Waybill wrote them.
	if inventory.Digest != "" && inventory.Digest != digestOf(chunks) {
		return nil, fmt.Errorf("read inventory: one of the Secrets %s in namespace %s was modified: they do not have the digest in status.inventory; "+
			"restore them from a backup", strings.Join(inventory.Secrets, ", "), owner.GetNamespace())
	}
	var entries []v1alpha1.InventoryEntry
	for i, chunk := range chunks {
		some, err := decompress(chunk)
		if err != nil {
			return nil, fmt.Errorf("read inventory: secret %s/%s: %w", owner.GetNamespace(), inventory.Secrets[i], err)
		}
		entries = append(entries, some...)
	}
	ids, err := Decode(entries)
	if err != nil {
		return nil, err
	}
	s.remember(owner, inventory, ids)
	return ids, nil
}

// Save returns the inventory for the owner's status. If it is too large for that, Secrets are
// written first: beside the ones that current names and never over them, so that a crash before the
// status is written loses nothing. Once the status is written, Clean removes the old ones. An
// inventory that did not change is returned as it is, and nothing is written.
func (s *Store) Save(ctx context.Context, c client.Client, owner client.Object, current v1alpha1.Inventory, ids []manifest.ID) (v1alpha1.Inventory, error) {
	entries := Encode(ids)
	if statusSize(entries) <= maxInStatus {
		return v1alpha1.Inventory{Entries: entries, Count: int32(len(entries))}, nil
	}
	if known, found := s.recall(owner, current); found && current.Digest != "" && slices.Equal(Encode(known), entries) {
		return current, nil
	}
	chunks, err := compressAll(entries)
	if err != nil {
		return v1alpha1.Inventory{}, err
	}
	names, err := freeNames(c, owner, current.Secrets, len(chunks))
	if err != nil {
		return v1alpha1.Inventory{}, err
	}
	for i, name := range names {
		if err := writeSecret(ctx, c, owner, name, chunks[i]); err != nil {
			return v1alpha1.Inventory{}, fmt.Errorf("write inventory: %w", err)
		}
	}
	saved := v1alpha1.Inventory{Secrets: names, Digest: digestOf(chunks), Count: int32(len(entries))}
	s.remember(owner, saved, ids)
	return saved, nil
}

// Clean deletes the Secrets that old names and current does not. It must be called only after
// current has been written to the owner's status.
func (s *Store) Clean(ctx context.Context, c client.Client, owner client.Object, old, current v1alpha1.Inventory) error {
	var errs []error
	for _, name := range old.Secrets {
		if slices.Contains(current.Secrets, name) {
			continue
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: name}}
		if err := c.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete old inventory: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Forget drops what is remembered of an owner that is gone.
func (s *Store) Forget(owner client.Object) { s.known.Drop(owner.GetUID()) }

func (s *Store) recall(owner client.Object, inventory v1alpha1.Inventory) ([]manifest.ID, bool) {
	known, found := s.known.Lookup(owner.GetUID())
	if !found || !slices.Equal(known.secrets, inventory.Secrets) || known.digest != inventory.Digest {
		return nil, false
	}
	return slices.Clone(known.ids), true
}

func (s *Store) remember(owner client.Object, inventory v1alpha1.Inventory, ids []manifest.ID) {
	s.known.Put(owner.GetUID(), remembered{secrets: slices.Clone(inventory.Secrets), digest: inventory.Digest, ids: slices.Clone(ids)})
}

// statusSize estimates the bytes of entries as JSON.
func statusSize(entries []v1alpha1.InventoryEntry) int {
	const punctuation = len(`{"id":"","v":""},`)
	size := 0
	for _, entry := range entries {
		size += len(entry.ID) + len(entry.Version) + punctuation
	}
	return size
}

// freeNames returns the first count names `waybill-inventory-<kind>-<name>-<n>`
// that are not taken by the current inventory.
func freeNames(c client.Client, owner client.Object, taken []string, count int) ([]string, error) {
	gvk, err := apiutil.GVKForObject(owner, c.Scheme())
	if err != nil {
		return nil, fmt.Errorf("name inventory: %w", err)
	}
	prefix := fmt.Sprintf("waybill-inventory-%s-%s", strings.ToLower(gvk.Kind), shortName(owner))
	names := make([]string, 0, count)
	for n := 0; len(names) < count; n++ {
		if name := fmt.Sprintf("%s-%d", prefix, n); !slices.Contains(taken, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// shortName returns the name of the owner or, if that would make the name of a Secret too long, its
// beginning and the UID, which is as unique.
func shortName(owner client.Object) string {
	const most = 150
	if name := owner.GetName(); len(name) <= most {
		return name
	}
	return fmt.Sprintf("%s-%s", strings.TrimRight(owner.GetName()[:most], "-."), owner.GetUID())
}

func readSecret(ctx context.Context, c client.Client, owner client.Object, name string) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: name}, secret); err != nil {
		return nil, err
	}
	return secret.Data[dataKey], nil
}

// writeSecret creates a Secret. It overwrites one that was left behind by a run that ended before
// the status named it, or by a deleted owner of that name. A Secret of another owner is not
// touched.
func writeSecret(ctx context.Context, c client.Client, owner client.Object, name string, data []byte) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: name},
		Type:       secretType,
		Data:       map[string][]byte{dataKey: data},
	}
	if err := controllerutil.SetOwnerReference(owner, secret, c.Scheme()); err != nil {
		return err
	}
	err := c.Create(ctx, secret)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(secret), existing); err != nil {
		return err
	}
	if owned, err := controllerutil.HasOwnerReference(existing.OwnerReferences, owner, c.Scheme()); err != nil || !owned {
		return errors.Join(err, fmt.Errorf("secret %s/%s exists and is not an inventory of %s", secret.Namespace, name, owner.GetName()))
	}
	// The owner may not be the one that left it behind, but another of the same name.
	if err := controllerutil.SetOwnerReference(owner, existing, c.Scheme()); err != nil {
		return err
	}
	existing.Data = secret.Data
	return c.Update(ctx, existing)
}
