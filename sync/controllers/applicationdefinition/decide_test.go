package applicationdefinition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
)

const hub = "hub"

func testOffer(t *testing.T) *form {
	t.Helper()
	o, err := newOffer(&v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"team": "a"}},
		Spec:       v1alpha1.ApplicationDefinitionSpec{Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0"}}},
	}, hub)
	require.NoError(t, err)
	return &o.toUsers
}

func liveCopy(change ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "web", UID: "u", Generation: 3, ResourceVersion: "30",
		Labels:      map[string]string{"team": "a", "theirs": "yes"},
		Annotations: map[string]string{v1alpha1.CopyOfAnnotation: hub},
	}}
	for _, f := range change {
		f(m)
	}
	return m
}

// C45, K32, K33
func TestDecide(t *testing.T) {
	offered := testOffer(t)
	current := verified{uid: "u", version: "30", generation: 3, hash: offered.hash}
	written := current
	written.at = time.Now()
	newer, older := written, current
	newer.version = "31"
	older.hash = "another"
	unreported := older
	unreported.bodyHash = offered.bodyHash
	rewritten := current
	rewritten.rewritten = true
	long := newer
	long.at = time.Now().Add(-2 * trust)
	terminating := func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = ptr.To(metav1.Now()) }
	foreign := func(m *metav1.PartialObjectMetadata) { m.Annotations = nil; m.UID = "v" }
	cases := map[string]struct {
		reason  string
		offered *form
		live    *metav1.PartialObjectMetadata
		last    verified
		want    action
	}{
		"Current":        {"nothing to do", offered, liveCopy(), current, nothing},
		"Absent":         {"there is none yet", offered, nil, verified{}, create},
		"Unverified":     {"it may have been edited while nobody watched", offered, liveCopy(), verified{}, put},
		"OfferChanged":   {"the hub offers something else", offered, liveCopy(), older, put},
		"StatusChanged":  {"the schemas of its values have become known", offered, liveCopy(), unreported, report},
		"Edited":         {"an edit of the spec raises the generation", offered, liveCopy(func(m *metav1.PartialObjectMetadata) { m.Generation = 4 }), current, put},
		"Replaced":       {"another object of that name, with our mark", offered, liveCopy(func(m *metav1.PartialObjectMetadata) { m.UID = "v" }), current, put},
		"LabelTaken":     {"a label of the original is gone", offered, liveCopy(func(m *metav1.PartialObjectMetadata) { m.Labels = nil }), current, put},
		"LabelTakenToo":  {"it is not as it should be, nor is its status", offered, liveCopy(func(m *metav1.PartialObjectMetadata) { m.Labels = nil }), unreported, put},
		"LabelRewritten": {"admission took it off our own write", offered, liveCopy(func(m *metav1.PartialObjectMetadata) { m.Labels = nil }), rewritten, nothing},
		"MarkTaken":      {"it is the object that we wrote", offered, liveCopy(func(m *metav1.PartialObjectMetadata) { m.Annotations = nil }), current, put},
		"Foreign":        {"it was never ours", offered, liveCopy(foreign), verified{}, yield},
		"OtherHub": {"it is another hub's", offered, liveCopy(func(m *metav1.PartialObjectMetadata) {
			m.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "other"}
		}), verified{}, yield},
		"Withdrawn":        {"it is not offered any more", nil, liveCopy(), current, drop},
		"WithdrawnForeign": {"what is not ours is never deleted", nil, liveCopy(foreign), verified{}, nothing},
		"Neither":          {"not offered, not there", nil, nil, verified{}, nothing},
		"WatchBehind":      {"the watch shows the state before our write", offered, liveCopy(), newer, await},
		"WatchBehindNew":   {"the watch does not show what we created", offered, nil, written, await},
		"WatchBroken":      {"a write that the watch never shows is not believed for ever", offered, nil, long, create},
		"Going":            {"it is deleted where it is, which no annotation allows", nil, liveCopy(terminating), current, nothing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, decide(tc.offered, tc.live, tc.last, hub), tc.reason)
		})
	}
}

// K33, C47: what goes by force in the hub goes by force in a seed, and nothing else does.
func TestDecide_inSeeds(t *testing.T) {
	stays, goes := &form{hash: "a"}, &form{hash: "a", going: true}
	adopts := &form{hash: "a", adopt: true}
	owned := func(m *metav1.PartialObjectMetadata) {
		m.Annotations = map[string]string{v1alpha1.OwnerAnnotation: "a GitSync"}
	}
	other := func(m *metav1.PartialObjectMetadata) {
		m.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "other"}
	}
	goesByForce := &form{hash: "a", going: true, forced: "*"}
	current := verified{uid: "u", version: "30", generation: 3, hash: "a"}
	forced := func(m *metav1.PartialObjectMetadata) { m.Annotations[v1alpha1.ForceRemoveAnnotation] = "*" }
	terminating := func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = ptr.To(metav1.Now()) }
	foreign := func(m *metav1.PartialObjectMetadata) { m.Annotations, m.UID = nil, "v" }
	cases := map[string]struct {
		reason  string
		offered *form
		live    *metav1.PartialObjectMetadata
		last    verified
		want    action
	}{
		"ForcedThere":    {"only the hub says what may be removed in use", stays, liveCopy(forced), current, put},
		"Deleted":        {"it is deleted in the hub", goes, liveCopy(), current, drop},
		"NotForcedYet":   {"it could be held for ever if it were deleted first", goesByForce, liveCopy(), current, put},
		"Forced":         {"now it can go", goesByForce, liveCopy(forced), current, drop},
		"Held":           {"it is in use there", goes, liveCopy(terminating), current, nothing},
		"HeldThenForced": {"the hub has lost its patience", goesByForce, liveCopy(terminating), current, put},
		"Gone":           {"nothing is created for a definition that goes", goes, nil, current, nothing},
		"Foreign":        {"the seed's own definition is not the hub's to delete", goes, liveCopy(foreign), verified{}, nothing},
		"Own":            {"it was there before", stays, liveCopy(foreign), verified{}, yield},
		"Adopted":        {"the hub was told to take it over", adopts, liveCopy(foreign), verified{}, put},
		"Delivered":      {"two would write it", adopts, liveCopy(foreign, owned), verified{}, yield},
		"OfAnother":      {"two hubs would write it", adopts, liveCopy(other), verified{}, yield},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, decide(tc.offered, tc.live, tc.last, hub), tc.reason)
		})
	}
}

// A drift conflict over a copy does not go on at full speed.
func TestVerified_pause(t *testing.T) {
	offered := testOffer(t)
	backoff := func(failures int) time.Duration { return time.Duration(failures) * 10 * time.Second }
	v := verified{}.next(liveCopy(), offered, backoff)
	for range 3 {
		assert.Zero(t, v.pause(offered), "the first times it is corrected at once")
		v = v.next(liveCopy(), offered, backoff)
	}
	assert.Zero(t, v.pause(offered))
	v = v.next(liveCopy(), offered, backoff)
	assert.InDelta(t, 10*time.Second, v.pause(offered), float64(5*time.Second))
	v = v.next(liveCopy(), offered, backoff)
	assert.InDelta(t, 20*time.Second, v.pause(offered), float64(5*time.Second), "then it takes longer")
	other := *offered
	other.hash = "another"
	assert.Zero(t, v.pause(&other), "what is new is written at once")
	assert.Zero(t, v.next(liveCopy(), &other, backoff).drift, "and is no correction")
}
