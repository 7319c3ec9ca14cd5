package metadata_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	"waybill.dev/waybill/test/bomb"
)

// S71, S86, S96, C21: what was saved comes back, without what the API server says of it.
func TestStore_keepsWhatWasSaved(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []v1alpha1.MetadataHandleType{object, onDisk} {
		first := w.save(uid, kind, definition("a"), noise(1))
		assert.Equal(t, first, w.save(uid, kind, definition("a"), noise(1)), "the same objects give the same bytes")
		second := w.save(other, kind, definition("b"))
		assert.NotEqual(t, first.Digest, second.Digest)

		for handle, want := range map[*v1alpha1.MetadataHandle][]*unstructured.Unstructured{
			&first: {stored(definition("a")), stored(noise(1))}, &second: {stored(definition("b"))},
		} {
			loaded, err := w.Load(t.Context(), *handle)
			require.NoError(t, err)
			assert.Equal(t, want, loaded, kind)
		}
	}
}

// C21: Secrets of a size that API servers accept, which no user changes by accident.
func TestStore_writesImmutableSecrets(t *testing.T) {
	w := newWorld(t)
	handle := w.save(uid, object, noise(1))
	secrets := w.secrets()
	require.Len(t, secrets, int(handle.Object.Chunks))
	require.Greater(t, len(secrets), 1)
	for _, s := range secrets {
		assert.True(t, *s.Immutable)
		assert.Equal(t, "apps.waybill.dev/snapshot", string(s.Type))
		assert.Equal(t, string(uid), s.Labels[v1alpha1.SnapshotUIDLabel])
		assert.LessOrEqual(t, len(s.Data["definitions"]), 500_000)
	}
	again := func() (uids []types.UID) {
		for _, s := range w.secrets() {
			uids = append(uids, s.UID)
		}
		return uids
	}
	before := again()
	w.save(uid, object, noise(1))
	assert.Equal(t, before, again(), "what is stored already is not written again")
}

// S95, C21: a process that ends while it saves leaves nothing that passes for a snapshot, or stays.
func TestStore_savesAgainAfterACrash(t *testing.T) {
	w := newWorld(t)
	crashing := *w.Store
	crashing.Client = &failing{Client: w.Client, left: 2}
	_, err := crashing.Save(t.Context(), uid, object, []*unstructured.Unstructured{noise(1)})
	require.ErrorIs(t, err, errEnded)
	require.Len(t, w.secrets(), 2)

	handle := w.save(uid, object, noise(2))
	loaded, err := w.Load(t.Context(), handle)
	require.NoError(t, err)
	assert.Equal(t, []*unstructured.Unstructured{stored(noise(2))}, loaded, "not what was begun before")

	handle = w.save(uid, object, definition("small"))
	assert.Len(t, w.secrets(), 1, "Secrets of the larger one are gone")
	loaded, err = w.Load(t.Context(), handle)
	require.NoError(t, err)
	assert.Equal(t, []*unstructured.Unstructured{stored(definition("small"))}, loaded)

	crashing.Client = &failing{Client: w.Client, left: 1}
	_, err = crashing.Save(t.Context(), other, object, []*unstructured.Unstructured{noise(1)})
	require.ErrorIs(t, err, errEnded)
	require.NoError(t, w.Delete(t.Context(), metadata.Unsaved(other, object)))
	assert.Len(t, w.secrets(), 1, "that of the first snapshot stays")
}

// S73: who deletes a snapshot may be interrupted, and tries again.
func TestStore_deletes(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []v1alpha1.MetadataHandleType{object, onDisk} {
		handle, kept := w.save(uid, kind, noise(1)), w.save(other, kind, definition("b"))
		for range 2 {
			require.NoError(t, w.Delete(t.Context(), handle))
		}
		_, err := w.Load(t.Context(), handle)
		require.ErrorIs(t, err, metadata.ErrDamaged)
		_, err = w.Load(t.Context(), kept)
		require.NoError(t, err, "that of another snapshot stays")
		require.NoError(t, w.Delete(t.Context(), kept))
	}
	assert.Empty(t, w.secrets())
	entries, err := os.ReadDir(w.Directory)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

// C21: what was altered by hand is not restored, and who reads the message knows where to look.
func TestLoad_refusesAlteredSecrets(t *testing.T) {
	w := newWorld(t)
	handle := w.save(uid, object, noise(1))
	chunks := make([][]byte, len(w.secrets()))
	for n, s := range w.secrets() { // by name
		chunks[n] = s.Data["definitions"]
	}
	flipped := bytes.Clone(chunks[0])
	flipped[len(flipped)/2] ^= 1
	for name, test := range map[string]struct {
		number  int
		data    []byte
		message string
	}{
		"a bit":             {0, flipped, "Secrets waybill-snapshot-" + string(uid) + "-N of namespace"},
		"another chunk":     {0, chunks[1], "Secrets waybill-snapshot-"},
		"shortened":         {0, chunks[0][1:], `Secret "waybill-snapshot-` + string(uid) + `-0" of namespace "` + w.SystemNamespace + `" was altered`},
		"nothing in it":     {1, nil, `-1" of namespace "` + w.SystemNamespace + `" was altered`},
		"more than written": {0, append(bytes.Clone(chunks[0]), 0), "was altered"},
	} {
		w.alter(test.number, test.data)
		_, err := w.Load(t.Context(), handle)
		require.ErrorIs(t, err, metadata.ErrDamaged, name)
		assert.ErrorContains(t, err, test.message, name)
		assert.ErrorContains(t, err, "take another snapshot", name)
		w.alter(test.number, chunks[test.number])
	}
	_, err := w.Load(t.Context(), handle)
	require.NoError(t, err)

	secret := w.secrets()[1]
	require.NoError(t, w.Client.Delete(t.Context(), &secret))
	_, err = w.Load(t.Context(), handle)
	require.ErrorIs(t, err, metadata.ErrDamaged)
	assert.ErrorContains(t, err, `Secret "`+secret.Name+`" of namespace "`+w.SystemNamespace+`" is missing`)
}

// C21: what an altered Secret or file unpacks to is not kept in memory.
func TestLoad_unpacksNoBomb(t *testing.T) {
	w := newWorld(t)
	packed := bomb.Gzip(t, bomb.Part{Text: "x", Times: 256 << 20})
	require.Less(t, len(packed), 500_000)
	handles := []v1alpha1.MetadataHandle{w.save(uid, object, definition("a")), w.save(uid, onDisk, definition("a"))}
	w.alter(0, packed)
	w.write(w.file(uid), packed)
	for _, handle := range handles {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := w.Load(t.Context(), handle)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, metadata.ErrDamaged, handle.Type)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), handle.Type)
	}
}

// C21: a handle that was altered by hand leads to nothing else.
func TestStore_refusesHandles(t *testing.T) {
	w := newWorld(t)
	saved, disk := w.save(uid, object, noise(1)), w.save(uid, onDisk, definition("a"))
	w.save(other, object, definition("b"))
	require.NoError(t, os.WriteFile(filepath.Join(w.Directory, "definitions.jsonl.gz"), nil, 0o600))
	change := func(of v1alpha1.MetadataHandle, how func(h *v1alpha1.MetadataHandle)) v1alpha1.MetadataHandle {
		h := *of.DeepCopy()
		how(&h)
		return h
	}
	type handle = v1alpha1.MetadataHandle
	for name, h := range map[string]handle{
		"name":          change(saved, func(h *handle) { h.Object.Name = "waybill-hub" }),
		"prefix":        change(saved, func(h *handle) { h.Object.Name = "waybill-snapshot-" }),
		"no chunks":     change(saved, func(h *handle) { h.Object.Chunks = 0 }),
		"many chunks":   change(saved, func(h *handle) { h.Object.Chunks = 1000 }),
		"type":          change(saved, func(h *handle) { h.Type = onDisk }),
		"unknown type":  change(saved, func(h *handle) { h.Type = "Else" }),
		"both":          change(saved, func(h *handle) { h.OnDisk = disk.OnDisk }),
		"parent":        change(disk, func(h *handle) { h.OnDisk.Directory = ".." }),
		"itself":        change(disk, func(h *handle) { h.OnDisk.Directory = "." }),
		"path":          change(disk, func(h *handle) { h.OnDisk.Directory = string(uid) + "/../" + string(other) }),
		"absolute path": change(disk, func(h *handle) { h.OnDisk.Directory = w.Directory }),
	} {
		_, err := w.Load(t.Context(), h)
		require.ErrorIs(t, err, metadata.ErrHandle, name)
		require.ErrorIs(t, w.Delete(t.Context(), h), metadata.ErrHandle, name)
	}
	for name, h := range map[string]handle{
		"fewer chunks":     change(saved, func(h *handle) { h.Object.Chunks-- }),
		"more chunks":      change(saved, func(h *handle) { h.Object.Chunks++ }),
		"digest":           change(saved, func(h *handle) { h.Digest = disk.Digest }),
		"another snapshot": change(saved, func(h *handle) { h.Object.Name = "waybill-snapshot-" + string(other); h.Object.Chunks = 1 }),
	} {
		_, err := w.Load(t.Context(), h)
		require.ErrorIs(t, err, metadata.ErrDamaged, name)
	}
	_, err := w.Save(t.Context(), "../"+uid, onDisk, nil)
	require.ErrorIs(t, err, metadata.ErrHandle, "no UID")
}

// C21: links lead out of a snapshot's folder, and a volume that is not mounted is no empty one.
func TestStore_onDisk(t *testing.T) {
	w := newWorld(t)
	handle, foreign := w.save(uid, onDisk, definition("a")), w.save(other, onDisk, definition("b"))
	info, err := os.Stat(w.file(uid))
	require.NoError(t, err)
	assert.Equal(t, "-rw-------", info.Mode().String())

	content, err := os.ReadFile(w.file(uid))
	require.NoError(t, err)
	w.write(w.file(uid), append(slices.Clone(content[:len(content)-1]), ^content[len(content)-1]))
	_, err = w.Load(t.Context(), handle)
	require.ErrorIs(t, err, metadata.ErrDamaged, "altered")
	w.write(filepath.Join(w.Directory, string(uid), "definitions.tmp"), []byte("of a process that ended"))
	assert.Equal(t, handle, w.save(uid, onDisk, definition("a")))
	_, err = w.Load(t.Context(), handle)
	require.NoError(t, err)

	require.NoError(t, os.Remove(w.file(uid)))
	require.NoError(t, os.Symlink(w.file(other), w.file(uid)))
	foreign.OnDisk.Directory = string(uid)
	_, err = w.Load(t.Context(), foreign)
	require.ErrorIs(t, err, metadata.ErrDamaged, "a file that is a link")

	require.NoError(t, os.RemoveAll(filepath.Join(w.Directory, string(uid))))
	require.NoError(t, os.Symlink(string(other), filepath.Join(w.Directory, string(uid))))
	_, err = w.Load(t.Context(), foreign)
	require.ErrorIs(t, err, metadata.ErrDamaged, "a folder that is a link")
	_, err = w.Save(t.Context(), uid, onDisk, nil)
	require.ErrorIs(t, err, metadata.ErrDamaged)
	require.NoError(t, w.Delete(t.Context(), handle))
	assert.FileExists(t, w.file(other), "the link is deleted, not what it leads to")

	require.NoError(t, os.RemoveAll(w.Directory))
	require.ErrorContains(t, w.Delete(t.Context(), handle), "does not exist")
	_, err = w.Load(t.Context(), handle)
	require.ErrorContains(t, err, "does not exist")
	require.NotErrorIs(t, err, metadata.ErrDamaged, "it may be mounted later")
	w.Directory = ""
	_, err = w.Save(t.Context(), uid, onDisk, nil)
	require.ErrorIs(t, err, metadata.ErrNoDirectory)
}
