package metadata

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// Errors that trying again does not mend.
var (
	// ErrDamaged: what is stored is not, or not all of, what was saved.
	ErrDamaged = errors.New("definitions are damaged")

	// ErrHandle: a handle is not one that Save returned.
	ErrHandle = errors.New("invalid metadataHandle")

	// ErrNoDirectory: type OnDisk is asked for, and there is no directory for it.
	ErrNoDirectory = errors.New("waybill-sync has no directory for definitions of type OnDisk: configure one, or use type Object")

	// ErrTooLarge: the definitions are more than a snapshot may hold.
	ErrTooLarge = errors.New("definitions are too large")
)

// Store keeps definitions. It is safe for concurrent use.
type Store struct {
	// Client reads and writes Secrets in SystemNamespace, without a cache. It needs get, list, create and
	// delete on them.
	Client client.Client
	// SystemNamespace is where the Secrets are.
	SystemNamespace string
	// Directory is the folder of type OnDisk; empty if there is none.
	Directory string
	// Room bounds what is borrowed at a time; nil if nothing does.
	Room *Room
}

// Save stores definitions under the UID of a snapshot. What was stored under it before, in whole or in
// part, is replaced. If Save is interrupted, Unsaved names what it left behind.
func (s *Store) Save(ctx context.Context, uid types.UID, kind v1alpha1.MetadataHandleType, objects []*unstructured.Unstructured) (v1alpha1.MetadataHandle, error) {
	handle := Unsaved(uid, kind)
	if err := s.check(handle); err != nil {
		return v1alpha1.MetadataHandle{}, err
	}
	packed, digest, err := pack(objects)
	if err != nil {
		return v1alpha1.MetadataHandle{}, err
	}
	handle.Digest = digest
	if handle.Type == v1alpha1.MetadataOnDisk {
		err = s.writeFile(handle.OnDisk.Directory, packed)
	} else {
		handle.Object.Chunks, err = s.writeSecrets(ctx, uid, packed)
	}
	if err != nil {
		return v1alpha1.MetadataHandle{}, fmt.Errorf("store definitions: %w", err)
	}
	return handle, nil
}

// Unsaved returns a handle without a digest, by which Delete deletes what an interrupted Save of this
// UID and type left behind.
func Unsaved(uid types.UID, kind v1alpha1.MetadataHandleType) v1alpha1.MetadataHandle {
	if kind == v1alpha1.MetadataOnDisk {
		return v1alpha1.MetadataHandle{Type: kind, OnDisk: &v1alpha1.OnDiskHandle{Directory: string(uid)}}
	}
	return v1alpha1.MetadataHandle{Type: v1alpha1.MetadataObject, Object: &v1alpha1.ObjectHandle{Name: secretPrefix + string(uid), Chunks: 1}}
}

// Load returns the definitions, if they still have the digest of the handle. The error is ErrDamaged,
// ErrHandle or ErrNoDirectory, unless trying again may help.
func (s *Store) Load(ctx context.Context, handle v1alpha1.MetadataHandle) ([]*unstructured.Unstructured, error) {
	packed, where, err := s.read(ctx, handle)
	if err != nil {
		return nil, err
	}
	objects, err := unpack(packed, handle.Digest)
	if err != nil {
		return nil, damaged("%s: %w", where, err)
	}
	return objects, nil
}

// read returns the compressed bytes of a handle, and says where they are.
func (s *Store) read(ctx context.Context, handle v1alpha1.MetadataHandle) (packed []byte, where string, err error) {
	if err := s.check(handle); err != nil {
		return nil, "", err
	}
	if handle.Type == v1alpha1.MetadataOnDisk {
		where = fmt.Sprintf("file %q of the directory for definitions", handle.OnDisk.Directory+"/"+fileName)
		packed, err = s.readFile(handle.OnDisk.Directory)
	} else {
		where = fmt.Sprintf("Secrets %s-N of namespace %q", handle.Object.Name, s.SystemNamespace)
		packed, err = s.readSecrets(ctx, *handle.Object)
	}
	return packed, where, err
}

// Delete deletes what is stored; it is no error if it is gone.
func (s *Store) Delete(ctx context.Context, handle v1alpha1.MetadataHandle) error {
	if err := s.check(handle); err != nil {
		return err
	}
	if handle.Type == v1alpha1.MetadataOnDisk {
		return s.removeFile(handle.OnDisk.Directory)
	}
	return s.removeSecrets(ctx, uidOf(handle), 0)
}

// uidPattern is what UIDs of API servers look like. They become names of Secrets and of folders.
var uidPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// check refuses a handle that is not of the form that Save returns: it could name Secrets and folders
// of others.
func (s *Store) check(handle v1alpha1.MetadataHandle) error {
	switch {
	case handle.Type == v1alpha1.MetadataObject && handle.Object != nil && handle.OnDisk == nil,
		handle.Type == v1alpha1.MetadataOnDisk && handle.OnDisk != nil && handle.Object == nil:
	default:
		return fmt.Errorf("%w: type %q needs the field of that type, and no other", ErrHandle, handle.Type)
	}
	if uid := uidOf(handle); !uidPattern.MatchString(string(uid)) {
		return fmt.Errorf("%w: it names no UID of an ApplicationSnapshot", ErrHandle)
	}
	if handle.Object != nil && (handle.Object.Chunks < 1 || handle.Object.Chunks > maxChunks) {
		return fmt.Errorf("%w: object.chunks is %d, and must be 1 to %d", ErrHandle, handle.Object.Chunks, maxChunks)
	}
	if handle.OnDisk != nil && s.Directory == "" {
		return ErrNoDirectory
	}
	return nil
}

// uidOf returns the UID that a handle names; empty if it names none.
func uidOf(handle v1alpha1.MetadataHandle) types.UID {
	if handle.OnDisk != nil {
		return types.UID(handle.OnDisk.Directory)
	}
	if len(handle.Object.Name) < len(secretPrefix) || handle.Object.Name[:len(secretPrefix)] != secretPrefix {
		return ""
	}
	return types.UID(handle.Object.Name[len(secretPrefix):])
}

// damaged adds the way out to what is wrong with the stored definitions.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w: restore them from a backup of the cluster, or take another snapshot", ErrDamaged, fmt.Errorf(format, args...))
}
