package inventory_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// fixture is a client that counts what is asked of it, and an owner.
type fixture struct {
	client.Client
	owner    *v1alpha1.GitSync
	requests int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	f := &fixture{owner: &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "site", UID: "u1"}}}
	f.Client = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			f.requests++
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			f.requests++
			return c.Create(ctx, o, opts...)
		},
	}).Build()
	return f
}

func (f *fixture) secrets(t *testing.T) map[string]corev1.Secret {
	t.Helper()
	list := &corev1.SecretList{}
	require.NoError(t, f.List(t.Context(), list))
	found := make(map[string]corev1.Secret)
	for _, secret := range list.Items {
		found[secret.Name] = secret
	}
	return found
}

// many returns so many objects in the order that an inventory has them.
func many(count int) []manifest.ID {
	var ids []manifest.ID
	for i := range count {
		ids = append(ids, manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("settings-of-part-%05d", i)})
	}
	return ids
}

// C41
func TestStore_smallStaysInStatus(t *testing.T) {
	f, store := newFixture(t), &inventory.Store{}
	saved, err := store.Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(1000))
	require.NoError(t, err)

	assert.Len(t, saved.Entries, 1000)
	assert.Empty(t, saved.Secrets)
	assert.EqualValues(t, 1000, saved.Count)
	loaded, err := store.Load(t.Context(), f, f.owner, saved)
	require.NoError(t, err)
	assert.Equal(t, many(1000), loaded)
	assert.Zero(t, f.requests)
}

// C41
func TestStore_largeGoesIntoSecrets(t *testing.T) {
	f := newFixture(t)
	saved, err := (&inventory.Store{}).Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(20000))
	require.NoError(t, err)

	assert.Empty(t, saved.Entries)
	assert.EqualValues(t, 20000, saved.Count)
	assert.Greater(t, len(saved.Secrets), 1)
	assert.Equal(t, "waybill-inventory-gitsync-site-0", saved.Secrets[0])
	for name, secret := range f.secrets(t) {
		assert.Contains(t, saved.Secrets, name)
		assert.Less(t, secret.Size(), 500_000)
		assert.Equal(t, f.owner.UID, secret.OwnerReferences[0].UID)
	}

	loaded, err := (&inventory.Store{}).Load(t.Context(), f, f.owner, saved)
	require.NoError(t, err)
	assert.Equal(t, many(20000), loaded, "another process reads the same")
}

func TestStore_unchangedCostsNothing(t *testing.T) {
	f, store := newFixture(t), &inventory.Store{}
	saved, err := store.Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(5000))
	require.NoError(t, err)
	f.requests = 0

	loaded, err := store.Load(t.Context(), f, f.owner, saved)
	require.NoError(t, err)
	slices.Reverse(loaded)
	again, err := store.Save(t.Context(), f, f.owner, saved, loaded)
	require.NoError(t, err)
	assert.Equal(t, saved, again)
	assert.Zero(t, f.requests)

	store.Forget(f.owner)
	_, err = store.Load(t.Context(), f, f.owner, saved)
	require.NoError(t, err)
	assert.NotZero(t, f.requests, "what is forgotten is read again")
}

// C41: a crash between the Secrets and the status loses nothing.
func TestStore_neverOverwritesTheCurrentOnes(t *testing.T) {
	f, store := newFixture(t), &inventory.Store{}
	first, err := store.Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(5000))
	require.NoError(t, err)
	crashed, err := store.Save(t.Context(), f, f.owner, first, many(6000))
	require.NoError(t, err)

	for _, name := range crashed.Secrets {
		assert.NotContains(t, first.Secrets, name)
	}
	loaded, err := (&inventory.Store{}).Load(t.Context(), f, f.owner, first)
	require.NoError(t, err)
	assert.Equal(t, many(5000), loaded, "the status still names the first ones")

	second, err := (&inventory.Store{}).Save(t.Context(), f, f.owner, first, many(7000))
	require.NoError(t, err, "what the crash left behind is overwritten")
	require.NoError(t, store.Clean(t.Context(), f, f.owner, first, second))
	assert.Len(t, f.secrets(t), len(second.Secrets))
	loaded, err = (&inventory.Store{}).Load(t.Context(), f, f.owner, second)
	require.NoError(t, err)
	assert.Equal(t, many(7000), loaded)
	require.NoError(t, store.Clean(t.Context(), f, f.owner, first, second), "cleaning twice is fine")
}

func TestStore_shrinksBackIntoStatus(t *testing.T) {
	f, store := newFixture(t), &inventory.Store{}
	large, err := store.Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(5000))
	require.NoError(t, err)
	small, err := store.Save(t.Context(), f, f.owner, large, many(5))
	require.NoError(t, err)

	assert.Len(t, small.Entries, 5)
	require.NoError(t, store.Clean(t.Context(), f, f.owner, large, small))
	assert.Empty(t, f.secrets(t))
}

// An owner that was deleted leaves Secrets behind for the garbage collector, which must not collect
// what another of that name has written into them since.
func TestStore_takesOverFromAnOwnerThatIsGone(t *testing.T) {
	f := newFixture(t)
	first, err := (&inventory.Store{}).Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(5000))
	require.NoError(t, err)
	f.owner.UID = "u2"
	second, err := (&inventory.Store{}).Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(6000))
	require.NoError(t, err)
	require.Contains(t, second.Secrets, first.Secrets[0], "the same names")
	for name, secret := range f.secrets(t) {
		require.Len(t, secret.OwnerReferences, 1)
		assert.Equal(t, f.owner.UID, secret.OwnerReferences[0].UID, name)
	}
}

func TestStore_refusesForeignSecret(t *testing.T) {
	f := newFixture(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "waybill-inventory-gitsync-site-0"}}
	require.NoError(t, f.Create(t.Context(), foreign))
	_, err := (&inventory.Store{}).Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(5000))
	require.ErrorContains(t, err, "secret team/waybill-inventory-gitsync-site-0 exists and is not an inventory of site")
}

func TestStore_damaged(t *testing.T) {
	f := newFixture(t)
	saved, err := (&inventory.Store{}).Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(5000))
	require.NoError(t, err)

	secret := f.secrets(t)[saved.Secrets[0]]
	secret.Data["inventory"] = secret.Data["inventory"][:100]
	require.NoError(t, f.Update(t.Context(), &secret))
	_, err = (&inventory.Store{}).Load(t.Context(), f, f.owner, saved)
	require.ErrorContains(t, err, "one of the Secrets waybill-inventory-gitsync-site-0")
	saved.Digest = "" // of an earlier version
	_, err = (&inventory.Store{}).Load(t.Context(), f, f.owner, saved)
	require.ErrorContains(t, err, "secret team/waybill-inventory-gitsync-site-0: expand inventory")

	require.NoError(t, f.Delete(t.Context(), &secret))
	_, err = (&inventory.Store{}).Load(t.Context(), f, f.owner, saved)
	require.ErrorContains(t, err, "read inventory")
}

func TestStore_longNames(t *testing.T) {
	f := newFixture(t)
	f.owner.Name = strings.Repeat("n", 253)
	saved, err := (&inventory.Store{}).Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(5000))
	require.NoError(t, err)
	for _, name := range saved.Secrets {
		assert.LessOrEqual(t, len(name), 253)
	}
}

// C41: who may write Secrets beside the owner neither has objects deleted nor forgotten.
func TestStore_readsNoForgedInventory(t *testing.T) {
	f := newFixture(t)
	saved, err := (&inventory.Store{}).Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(5000))
	require.NoError(t, err)
	require.NotEmpty(t, saved.Digest)
	other := newFixture(t)
	_, err = (&inventory.Store{}).Save(t.Context(), other, other.owner, v1alpha1.Inventory{}, many(6000))
	require.NoError(t, err)
	secret, forged := f.secrets(t)[saved.Secrets[0]], other.secrets(t)[saved.Secrets[0]]
	secret.Data = forged.Data
	require.NoError(t, f.Update(t.Context(), &secret))
	_, err = (&inventory.Store{}).Load(t.Context(), f, f.owner, saved)
	require.ErrorContains(t, err, "they do not have the digest in status.inventory")
}

// An inventory of an earlier version has no digest: it is read, and rewritten with one.
func TestStore_addsTheDigest(t *testing.T) {
	f := newFixture(t)
	saved, err := (&inventory.Store{}).Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(5000))
	require.NoError(t, err)
	saved.Digest = ""
	store := &inventory.Store{}
	loaded, err := store.Load(t.Context(), f, f.owner, saved)
	require.NoError(t, err)
	again, err := store.Save(t.Context(), f, f.owner, saved, loaded)
	require.NoError(t, err)
	assert.NotEmpty(t, again.Digest)
}

// Few bytes that become many are not unpacked, even where no digest protects from them.
func TestStore_boundsWhatItUnpacks(t *testing.T) {
	f := newFixture(t)
	saved, err := (&inventory.Store{}).Save(t.Context(), f, f.owner, v1alpha1.Inventory{}, many(5000))
	require.NoError(t, err)
	saved.Digest = ""
	for want, text := range map[string]string{
		"expand inventory: larger than 1048576 bytes":                      strings.Repeat(" ", 2<<20),
		"expand inventory: the JSON text contains more than 100000 values": "[" + strings.Repeat("{},", 150_000) + "{}]",
	} {
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		_, err := zip.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, zip.Close())
		secret := f.secrets(t)[saved.Secrets[0]]
		secret.Data["inventory"] = packed.Bytes()
		require.NoError(t, f.Update(t.Context(), &secret))
		_, err = (&inventory.Store{}).Load(t.Context(), f, f.owner, saved)
		require.ErrorContains(t, err, want)
	}
}
