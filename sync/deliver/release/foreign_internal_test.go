package release

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/bomb"
)

// hookBomb is a record of some 120 KB that becomes gigabytes once it is decoded.
func hookBomb(t *testing.T) *corev1.Secret {
	t.Helper()
	packed := inBase64(bomb.Gzip(t, bomb.Part{Text: `{"name":"web","version":2,"info":{"status":"deployed"},"hooks":[`, Times: 1},
		bomb.Part{Text: "{},", Times: 40 << 20}, bomb.Part{Text: "{}]}", Times: 1}))
	require.Less(t, len(packed), 300<<10)
	return &corev1.Secret{Data: map[string][]byte{recordKey: packed}}
}

func inBase64(packed []byte) []byte { return base64.StdEncoding.AppendEncode(nil, packed) }

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestDecode_bounds(t *testing.T) {
	hooks := hookBomb(t)
	var err error
	used := allocated(func() { _, err = decodeTheirs(hooks) })
	require.ErrorContains(t, err, "more than 100000 values")
	assert.Less(t, used, uint64(8<<20))

	large := inBase64(bomb.Gzip(t, bomb.Part{Text: `{"name":"web","manifest":"`, Times: 1}, bomb.Part{Text: "a", Times: 17 << 20}, bomb.Part{Text: `"}`, Times: 1}))
	_, err = decodeTheirs(&corev1.Secret{Data: map[string][]byte{recordKey: large}})
	assert.ErrorContains(t, err, "it unpacks to more than 16777216 bytes")
}

// serving returns a store of one release whose records are served as they are.
func serving(t *testing.T, known *v1alpha1.ReleaseStatus, secret *corev1.Secret, revisions ...Revision) *store {
	t.Helper()
	secret.APIVersion, secret.Kind = "v1", "Secret"
	text, err := json.Marshal(secret)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = bytes.NewReader(text).WriteTo(w)
	}))
	t.Cleanup(server.Close)
	id := Identity{Namespace: "shop", Name: "web", Known: known}
	s, err := newStore(t.Context(), t.Context(), &rest.Config{Host: server.URL}, id, Observed{Revisions: revisions})
	require.NoError(t, err)
	return s
}

// A record that was not noted is not decoded if that takes much memory, and its revision is an outline.
func TestStore_doesNotDecodeABomb(t *testing.T) {
	s := serving(t, nil, hookBomb(t), Revision{Number: 2, Status: helmrelease.StatusDeployed})
	var found *helmrelease.Release
	var err error
	used := allocated(func() { found, err = s.Get(s.key(2)) })
	require.NoError(t, err)
	assert.Less(t, used, uint64(16<<20))
	assert.Empty(t, found.Hooks)
	assert.True(t, s.isAltered(2))
	_, err = s.claimed(2)
	assert.ErrorContains(t, err, "more than 100000 values")
}

// A record that Waybill stored just so is read, however large it is; one that executes the same is, if it
// is small enough; no other is.
func TestStore_comparesBytesFirst(t *testing.T) {
	many := record()
	many.Config = map[string]any{"list": make([]int, 2*theirs.values)}
	small := record()
	for name, c := range map[string]struct {
		reason  string
		known   v1alpha1.ReleaseStatus
		release *helmrelease.Release
		want    bool
	}{
		"stored so":    {"these are the bytes that were noted", v1alpha1.ReleaseStatus{StoredDigest: "as stored"}, many, true},
		"too large":    {"somebody added to what is not executed", v1alpha1.ReleaseStatus{RecordDigest: seal(many), StoredDigest: "other"}, many, false},
		"tested":       {"helm test wrote when a hook ran last", v1alpha1.ReleaseStatus{RecordDigest: seal(small), StoredDigest: "other"}, small, true},
		"older status": {"a version without digests of the bytes noted it", v1alpha1.ReleaseStatus{RecordDigest: seal(small)}, small, true},
		"altered":      {"it would execute something else", v1alpha1.ReleaseStatus{RecordDigest: "other", StoredDigest: "other"}, small, false},
		"not noted":    {"an empty digest is that of nothing", v1alpha1.ReleaseStatus{}, small, false},
	} {
		t.Run(name, func(t *testing.T) {
			secret, err := encode("key", c.release, labelCreated, Identity{})
			require.NoError(t, err)
			c.known.Revision = 3
			if c.known.StoredDigest == "as stored" {
				c.known.StoredDigest = storedDigest(secret)
			}
			s := serving(t, &c.known, secret, Revision{Number: 3, Status: helmrelease.StatusDeployed})
			found, err := s.Get(s.key(3))
			require.NoError(t, err)
			assert.Equal(t, c.want, len(found.Hooks) == 2, c.reason)
			assert.Equal(t, !c.want, s.isAltered(3), c.reason)
		})
	}
}

func TestCheckClaim(t *testing.T) {
	for name, c := range map[string]struct{ manifest, want string }{
		"sane":    {"kind: ConfigMap\ndata: {a: b}\n", ""},
		"large":   {strings.Repeat("a", maxClaimed+1), "more than 4194304 bytes"},
		"values":  {"a: [" + strings.Repeat("{},", maxClaimedValues) + "]", "more than 100000 values"},
		"aliases": {"a: &a [" + strings.Repeat("x,", 300) + "]\nb: [" + strings.Repeat("*a,", 300) + "]", "aliases stand for too many values"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkClaim(c.manifest)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// However many revisions a user forges, not all of what they hold is kept.
func TestStore_keepsLittleOfManyAlteredRecords(t *testing.T) {
	noise := make([]byte, 2<<20)
	s := serving(t, nil, &corev1.Secret{})
	for revision := range 50 {
		secret := &corev1.Secret{Data: map[string][]byte{recordKey: noise}}
		s.altered[revision] = s.keep(secret, record(), nil)
	}
	kept := 0
	for _, f := range s.altered {
		if f.secret != nil {
			kept++
		}
	}
	assert.Equal(t, 7, kept)
	_, err := s.claimed(49)
	assert.ErrorContains(t, err, "too many revisions")
}

func TestPossible(t *testing.T) {
	const most = int(^uint(0) >> 1)
	for name, c := range map[string]struct {
		reason    string
		known     int32
		revisions []int
		want      int
	}{
		"none":        {"there is nothing", 0, nil, 0},
		"usual":       {"one follows another", 3, []int{1, 2, 3}, 3},
		"pruned":      {"failed ones were deleted in between", 250, []int{3, 246, 247, 248, 249, 250}, 6},
		"by hand":     {"somebody made some more", 3, []int{3, 4, 5, 6}, 4},
		"forged":      {"nothing leads to it", 1, []int{1, 999}, 1},
		"overflow":    {"the next one would be negative", 1, []int{1, 2147483647, most}, 1},
		"restored":    {"what is known is of an old backup", 3, []int{246, 247}, 2},
		"forgotten":   {"what was known is lost", 0, []int{246, 247}, 2},
		"only forged": {"no release began there", 1, []int{2147483647}, 0},
		"not known":   {"no release began there", 0, []int{most}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var revisions []Revision
			for _, n := range c.revisions {
				revisions = append(revisions, Revision{Number: n})
			}
			var known *v1alpha1.ReleaseStatus
			if c.known > 0 {
				known = &v1alpha1.ReleaseStatus{Revision: c.known}
			}
			assert.Equal(t, c.want, possible(revisions, known), c.reason)
		})
	}
}
