// Package credentials reads Secrets without asking the API server again while they do not
// change: a metadata-only watch tells the resource version, and content is fetched once per
// version.
package credentials

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Secret is the content of a Secret at one resource version.
type Secret struct {
	// Data of the Secret; not to be changed.
	Data map[string][]byte
	// Annotations of the Secret; not to be changed.
	Annotations map[string]string
	// Hash of the content, in hex. Safe to log: it does not tell the content.
	Hash string
}

// Reader reads Secrets. It is safe for concurrent use.
type Reader struct {
	metadata client.Reader
	content  client.Reader

	mu    sync.Mutex
	known map[types.NamespacedName]entry
}

type entry struct {
	version string
	secret  *Secret
}

// NewReader returns a reader that learns resource versions from metadata, which is a cache,
// and fetches content from content, which is not.
func NewReader(metadata, content client.Reader) *Reader {
	return &Reader{metadata: metadata, content: content, known: map[types.NamespacedName]entry{}}
}

// Metadata returns the empty object that metadata of a Secret is read into and watched with.
func Metadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return m
}

// Get returns the Secret of that name. Where it does not exist, the error is one that
// apierrors.IsNotFound knows.
func (r *Reader) Get(ctx context.Context, name types.NamespacedName) (*Secret, error) {
	seen := Metadata()
	if err := r.metadata.Get(ctx, name, seen); err != nil {
		r.forget(name)
		return nil, fmt.Errorf("get secret %s: %w", name, err)
	}
	if known := r.lookup(name, seen.ResourceVersion); known != nil {
		return known, nil
	}
	secret := &corev1.Secret{}
	if err := r.content.Get(ctx, name, secret); err != nil {
		return nil, fmt.Errorf("get secret %s: %w", name, err)
	}
	read := &Secret{Data: secret.Data, Annotations: secret.Annotations, Hash: hash(secret.Data)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[name] = entry{version: secret.ResourceVersion, secret: read}
	return read, nil
}

func (r *Reader) lookup(name types.NamespacedName, version string) *Secret {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.known[name]; ok && e.version == version {
		return e.secret
	}
	return nil
}

func (r *Reader) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, name)
}

// hash tells two contents apart; every part is written with its length, so that no two
// contents run into the same bytes.
func hash(data map[string][]byte) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(h, "%d:%s%d:", len(key), key, len(data[key]))
		h.Write(data[key])
	}
	return hex.EncodeToString(h.Sum(nil))
}
