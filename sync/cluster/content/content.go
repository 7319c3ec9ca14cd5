// Package content reads Secrets and ConfigMaps without asking the API server again while they do
// not change: a metadata-only watch provides the resource version, and the content is fetched once
// per version and kept until the watch reports that the object was deleted.
package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/keyed"
)

// Kind is a kind that holds content.
type Kind string

// The kinds that hold content.
const (
	Secret    Kind = "Secret"
	ConfigMap Kind = "ConfigMap"
)

// Content is the content of a Secret or ConfigMap at one resource version.
type Content struct {
	// Data by key; must not be changed.
	Data map[string][]byte
	// Annotations and Labels of the object; must not be changed.
	Annotations, Labels map[string]string
	// Type of a Secret; empty for a ConfigMap.
	Type corev1.SecretType
	// Hash of the data, in hex. It is safe to log: it does not reveal the data.
	Hash string
}

// Reader reads Secrets and ConfigMaps of one cluster. It is safe for concurrent use.
type Reader struct {
	// ctx is the lifetime of the reader.
	ctx      context.Context
	metadata cache.Cache
	content  client.Reader

	known keyed.Map[key, entry]
	// followed has the kinds whose deletions are watched.
	followed keyed.Map[Kind, cache.Informer]
}

type key struct {
	Kind
	types.NamespacedName
}

type entry struct {
	version string
	content *Content
}

// NewReader returns a reader that gets resource versions and deletions from metadata, and fetches
// content from content, which must not be a cache. It may be used until ctx ends.
func NewReader(ctx context.Context, metadata cache.Cache, content client.Reader) *Reader {
	return &Reader{ctx: ctx, metadata: metadata, content: content}
}

// Metadata returns an empty object for reading and watching the metadata of a kind.
func Metadata(kind Kind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind)))
	return m
}

// Get returns the content of the object of that kind and name. If the object does not exist,
// apierrors.IsNotFound reports true for the error.
func (r *Reader) Get(ctx context.Context, kind Kind, name types.NamespacedName) (*Content, error) {
	if err := r.follow(kind); err != nil {
		return nil, fmt.Errorf("watch %ss: %w", kind, err)
	}
	k := key{kind, name}
	seen := Metadata(kind)
	if err := r.metadata.Get(ctx, name, seen); err != nil {
		r.known.Drop(k)
		return nil, fmt.Errorf("get %s %s: %w", kind, name, err)
	}
	if known, found := r.known.Lookup(k); found && known.version == seen.ResourceVersion {
		return known.content, nil
	}
	read, version, err := r.fetch(ctx, k)
	if err != nil {
		r.known.Drop(k)
		return nil, fmt.Errorf("get %s %s: %w", kind, name, err)
	}
	r.known.Put(k, entry{version: version, content: read})
	return read, nil
}

// Fetch is like Get, but for callers without metadata that has the version: it asks the API server
// each time, and keeps nothing.
func (r *Reader) Fetch(ctx context.Context, kind Kind, name types.NamespacedName) (*Content, error) {
	read, _, err := r.fetch(ctx, key{kind, name})
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", kind, name, err)
	}
	return read, nil
}

// follow drops the content of objects of a kind when they are deleted: the objects that named them
// may be gone too, so that Get is never called for them again.
func (r *Reader) follow(kind Kind) error {
	_, err := r.followed.Make(kind, func() (cache.Informer, error) {
		informer, _, err := watch.Handle(r.ctx, r.metadata, Metadata(kind), toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(gone any) {
			if name, err := toolscache.DeletionHandlingObjectToName(gone); err == nil {
				r.known.Drop(key{kind, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}})
			}
		}})
		return informer, err
	})
	return err
}

func (r *Reader) fetch(ctx context.Context, k key) (*Content, string, error) {
	if k.Kind == Secret {
		secret := &corev1.Secret{}
		err := r.content.Get(ctx, k.NamespacedName, secret)
		read := newContent(secret.Data, secret)
		read.Type = secret.Type
		return read, secret.ResourceVersion, err
	}
	configMap := &corev1.ConfigMap{}
	err := r.content.Get(ctx, k.NamespacedName, configMap)
	data := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	maps.Copy(data, configMap.BinaryData)
	for name, value := range configMap.Data {
		data[name] = []byte(value)
	}
	return newContent(data, configMap), configMap.ResourceVersion, err
}

func newContent(data map[string][]byte, object client.Object) *Content {
	return &Content{Data: data, Annotations: object.GetAnnotations(), Labels: object.GetLabels(), Hash: hash(data)}
}

// hash distinguishes contents. Every part is preceded by its length, so that different contents
// never result in the same bytes.
func hash(data map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(h, "%d:%s%d:", len(name), name, len(data[name]))
		h.Write(data[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
