package content_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"waybill.dev/waybill/sync/cluster/content"
)

var name = types.NamespacedName{Namespace: "team", Name: "one"}

// counting counts how often content, and not metadata, is read.
type counting struct {
	client.Reader
	reads int
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.reads++
	return c.Reader.Get(ctx, key, obj, opts...)
}

func newReader(t *testing.T, objects ...client.Object) (*content.Reader, client.Client, *counting) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	direct := &counting{Reader: c}
	return content.NewReader(t.Context(), &metadataCache{reader: c}, direct), c, direct
}

// metadataCache is a cache of metadata that reports deletions when the test has it do so.
type metadataCache struct {
	informertest.FakeInformers
	reader client.Reader
}

func (m *metadataCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return m.reader.Get(ctx, key, obj, opts...)
}

func (m *metadataCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	return m.GetInformerForKind(ctx, obj.GetObjectKind().GroupVersionKind(), opts...)
}

func secret(data string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: map[string][]byte{"key": []byte(data)}}
}

func TestReader_readsOncePerVersion(t *testing.T) {
	reader, c, direct := newReader(t, secret("one"))
	for range 3 {
		got, err := reader.Get(t.Context(), content.Secret, name)
		require.NoError(t, err)
		assert.Equal(t, "one", string(got.Data["key"]))
	}
	assert.Equal(t, 1, direct.reads)

	changed := &corev1.Secret{}
	require.NoError(t, c.Get(t.Context(), name, changed))
	changed.Data["key"] = []byte("two")
	require.NoError(t, c.Update(t.Context(), changed))
	got, err := reader.Get(t.Context(), content.Secret, name)
	require.NoError(t, err)
	assert.Equal(t, "two", string(got.Data["key"]))
	assert.Equal(t, 2, direct.reads)
}

// What was deleted is not kept for those who might still ask: there may be none.
func TestReader_dropsWhatIsDeleted(t *testing.T) {
	_, c, direct := newReader(t, secret("one"))
	metadata := &metadataCache{reader: c}
	reader := content.NewReader(t.Context(), metadata, direct)
	get := func() {
		_, err := reader.Get(t.Context(), content.Secret, name)
		require.NoError(t, err)
	}
	get()
	informer, err := metadata.FakeInformerFor(t.Context(), &corev1.Secret{})
	require.NoError(t, err)
	gone := content.Metadata(content.Secret)
	gone.SetNamespace(name.Namespace)
	gone.SetName("another")
	informer.Delete(gone)
	get()
	require.Equal(t, 1, direct.reads)

	gone.SetName(name.Name)
	informer.Delete(gone)
	get()
	assert.Equal(t, 2, direct.reads)
}

func TestReader_fetchKeepsNothing(t *testing.T) {
	reader, _, direct := newReader(t, secret("one"))
	for range 2 {
		got, err := reader.Fetch(t.Context(), content.Secret, name)
		require.NoError(t, err)
		assert.Equal(t, "one", string(got.Data["key"]))
	}
	_, err := reader.Get(t.Context(), content.Secret, name)
	require.NoError(t, err)
	assert.Equal(t, 3, direct.reads)
}

func TestReader_readsConfigMaps(t *testing.T) {
	reader, _, _ := newReader(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Data:       map[string]string{"text": "a"}, BinaryData: map[string][]byte{"binary": {1}},
	})
	got, err := reader.Get(t.Context(), content.ConfigMap, name)
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"text": []byte("a"), "binary": {1}}, got.Data)
}

func TestReader_tellsWhatIsNotThere(t *testing.T) {
	reader, c, _ := newReader(t)
	_, err := reader.Get(t.Context(), content.Secret, name)
	assert.True(t, apierrors.IsNotFound(err))
	require.NoError(t, c.Create(t.Context(), secret("late")))
	_, err = reader.Get(t.Context(), content.Secret, name)
	assert.NoError(t, err)
}

func TestReader_hashesTellContentsApart(t *testing.T) {
	hash := func(data map[string][]byte) string {
		reader, _, _ := newReader(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: data})
		got, err := reader.Get(t.Context(), content.Secret, name)
		require.NoError(t, err)
		return got.Hash
	}
	a := hash(map[string][]byte{"a": []byte("bc")})
	assert.NotEqual(t, a, hash(map[string][]byte{"ab": []byte("c")}), "key and value do not run into each other")
	assert.Equal(t, a, hash(map[string][]byte{"a": []byte("bc")}))
}
