package metadata_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }

const (
	object = v1alpha1.MetadataObject
	onDisk = v1alpha1.MetadataOnDisk

	uid   types.UID = "01234567-89ab-cdef-0123-456789abcdef"
	other types.UID = "fedcba98-7654-3210-fedc-ba9876543210"
)

// world is a store with a system namespace and a directory of its own.
type world struct {
	*testing.T
	*metadata.Store
}

func newWorld(t *testing.T) *world {
	c := env.Shared(t, env.Options{Name: "cluster", NoControllers: true})
	direct, err := client.New(c.RESTConfig(), client.Options{})
	require.NoError(t, err)
	return &world{t, &metadata.Store{Client: direct, SystemNamespace: c.Namespace(t), Directory: t.TempDir()}}
}

func (w *world) save(id types.UID, kind v1alpha1.MetadataHandleType, objects ...*unstructured.Unstructured) v1alpha1.MetadataHandle {
	w.Helper()
	handle, err := w.Save(w.Context(), id, kind, objects)
	require.NoError(w, err)
	return handle
}

// secrets returns the Secrets of the system namespace.
func (w *world) secrets() []corev1.Secret {
	w.Helper()
	all := &corev1.SecretList{}
	require.NoError(w, w.Client.List(w.Context(), all, client.InNamespace(w.SystemNamespace)))
	return all.Items
}

// alter replaces the bytes of the Secret with that number.
func (w *world) alter(number int, data []byte) {
	w.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: w.SystemNamespace, Name: fmt.Sprintf("waybill-snapshot-%s-%d", uid, number)}
	require.NoError(w, w.Client.Get(w.Context(), key, secret))
	require.NoError(w, w.Client.Delete(w.Context(), secret))
	secret.ResourceVersion, secret.UID, secret.Data = "", "", map[string][]byte{"definitions": data}
	require.NoError(w, w.Client.Create(w.Context(), secret))
}

// file returns the path of the file of a snapshot.
func (w *world) file(id types.UID) string {
	return filepath.Join(w.Directory, string(id), "definitions.jsonl.gz")
}

func (w *world) write(path string, content []byte) {
	w.Helper()
	require.NoError(w, os.WriteFile(path, content, 0o600))
}

// failing creates as many Secrets as the test says, and then none any more, as if the process had ended.
type failing struct {
	client.Client
	left int
}

var errEnded = errors.New("the process ended")

func (f *failing) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if f.left--; f.left < 0 {
		return errEnded
	}
	return f.Client.Create(ctx, o, options...)
}

// definition returns an object with the fields that Kubernetes adds.
func definition(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": name, "uid": "of-" + name, "generation": int64(3), "managedFields": []any{map[string]any{"manager": "kubectl"}},
		},
		"spec":   map[string]any{"replicas": int64(2), "weight": 0.5, "command": "a\nb <&>"},
		"status": map[string]any{"replicas": int64(2)},
	}}
}

// stored returns what is kept of a definition.
func stored(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	delete(o.Object, "status")
	o.SetManagedFields(nil)
	return o
}

// noise returns an object that cannot be compressed, and takes three Secrets.
func noise(seed byte) *unstructured.Unstructured {
	random := make([]byte, 1_200_000)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(random) // never fails
	o := definition("noise")
	o.Object["spec"] = map[string]any{"text": base64.StdEncoding.EncodeToString(random)}
	return o
}
