package metadata

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

const (
	// secretPrefix, the UID and a number make the name of a Secret.
	secretPrefix = "waybill-snapshot-"
	secretType   = "apps.waybill.dev/snapshot"
	secretKey    = "definitions"

	// chunkSize is how much a Secret holds; API servers refuse more than 1 MiB.
	chunkSize = 500_000
	// maxChunks is how many there are if nothing can be compressed.
	maxChunks = maxText/chunkSize + 2
)

// writeSecrets stores the bytes, and returns in how many Secrets. One that is there from an earlier time
// stays if it holds the same, and is replaced otherwise.
func (s *Store) writeSecrets(ctx context.Context, uid types.UID, packed []byte) (int32, error) {
	n, before := 0, false
	for chunk := range slices.Chunk(packed, chunkSize) {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.SystemNamespace, Name: secretPrefix + string(uid) + "-" + strconv.Itoa(n),
				Labels: map[string]string{v1alpha1.SnapshotUIDLabel: string(uid)},
			},
			Immutable: ptr.To(true), Type: secretType,
			Data: map[string][]byte{secretKey: chunk},
		}
		there, err := s.writeSecret(ctx, secret)
		if err != nil {
			return 0, err
		}
		before = before || there
		n++
	}
	if !before { // the first is written first, and deleted only with all others
		return int32(n), nil
	}
	return int32(n), s.removeSecrets(ctx, uid, n)
}

// writeSecret creates a Secret, and reports whether one of that name was there. An immutable one cannot be updated,
// so another one is deleted first.
func (s *Store) writeSecret(ctx context.Context, secret *corev1.Secret) (there bool, err error) {
	err = s.Client.Create(ctx, secret.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		return true, s.replaceSecret(ctx, secret)
	}
	return false, err
}

// replaceSecret has a Secret that exists hold what it should.
func (s *Store) replaceSecret(ctx context.Context, secret *corev1.Secret) error {
	there := &corev1.Secret{}
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(secret), there)
	if err == nil && there.DeletionTimestamp == nil && ptr.Deref(there.Immutable, false) &&
		maps.Equal(there.Labels, secret.Labels) && bytes.Equal(there.Data[secretKey], secret.Data[secretKey]) {
		return nil
	}
	if err == nil {
		err = s.Client.Delete(ctx, there, client.Preconditions{UID: &there.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	return s.Client.Create(ctx, secret)
}

// removeSecrets deletes the Secrets of a UID whose number is at least from.
func (s *Store) removeSecrets(ctx context.Context, uid types.UID, from int) error {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := s.Client.List(ctx, all, client.InNamespace(s.SystemNamespace), client.MatchingLabels{v1alpha1.SnapshotUIDLabel: string(uid)})
	if err != nil {
		return fmt.Errorf("list Secrets in namespace %q: %w", s.SystemNamespace, err)
	}
	for i := range all.Items {
		number, ok := strings.CutPrefix(all.Items[i].Name, secretPrefix+string(uid)+"-")
		if n, err := strconv.Atoi(number); !ok || err != nil || n < from {
			continue
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.SystemNamespace, Name: all.Items[i].Name}}
		if err := s.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Secret %q: %w", secret.Name, err)
		}
	}
	return nil
}

// readSecrets returns the bytes. It refuses a Secret that is not as large as it was.
func (s *Store) readSecrets(ctx context.Context, handle v1alpha1.ObjectHandle) ([]byte, error) {
	var packed []byte
	for n := range int(handle.Chunks) {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: s.SystemNamespace, Name: handle.Name + "-" + strconv.Itoa(n)}
		err := s.Client.Get(ctx, key, secret)
		switch {
		case apierrors.IsNotFound(err):
			return nil, damaged("Secret %q of namespace %q is missing", key.Name, key.Namespace)
		case err != nil:
			return nil, fmt.Errorf("get Secret %q in namespace %q: %w", key.Name, key.Namespace, err)
		}
		chunk, last := secret.Data[secretKey], n == int(handle.Chunks)-1
		if len(chunk) == 0 || len(chunk) > chunkSize || (!last && len(chunk) != chunkSize) {
			return nil, damaged("Secret %q of namespace %q was altered", key.Name, key.Namespace)
		}
		packed = append(packed, chunk...)
	}
	return packed, nil
}
