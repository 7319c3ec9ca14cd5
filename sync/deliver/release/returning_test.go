package release_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
)

// returnTo has a release be what it was at a revision.
func (w *world) returnTo(revision int) (release.Result, error) {
	w.Helper()
	result, err := w.engine.ReturnTo(w.Context(), w.target, w.identity("web"), release.Options{}, release.Return{Revision: revision})
	if err == nil {
		w.known["web"] = result.Release
	}
	return result, err
}

// C65: a release goes back to the revision that it had, as `helm history` shows.
func TestReturnTo_anyNotedRevision(t *testing.T) {
	w := newWorld(t)
	for _, greeting := range []string{"one", "two", "three"} {
		w.ensure(w.desired("web", values{"greeting": greeting}))
	}
	require.Equal(t, []int32{1}, earlierOf(w.known["web"]), "beside the newest and the one before it")
	result, err := w.returnTo(1)
	require.NoError(t, err)
	assert.Equal(t, "one", w.greeting())
	assert.Equal(t, []string{"1 superseded", "2 superseded", "3 superseded", "4 deployed"}, w.revisions("web"))
	assert.EqualValues(t, 4, result.Release.Revision)
	assert.Empty(t, result.Release.Digest, "it is not what is wanted")
	assert.Equal(t, []int32{1, 2}, earlierOf(result.Release))

	drift, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
	require.NoError(t, err)
	assert.Empty(t, drift.Objects, "corrections go by it from then on")

	result, err = w.returnTo(4)
	require.NoError(t, err)
	assert.EqualValues(t, 4, result.Release.Revision, "it is there already")

	w.ensure(w.desired("web", values{"greeting": "three"}))
	assert.Equal(t, "three", w.greeting(), "what is wanted is installed again")
}

func earlierOf(status v1alpha1.ReleaseStatus) []int32 {
	var numbers []int32
	for _, r := range status.Earlier {
		numbers = append(numbers, r.Revision)
	}
	return numbers
}

// C65: what is no longer in the history, or not as it was noted, is not run.
func TestReturnTo_refusesWhatIsNotKnown(t *testing.T) {
	w := newWorld(t)
	for _, greeting := range []string{"one", "two", "three"} {
		w.ensure(w.desired("web", values{"greeting": greeting}))
	}
	_, err := w.returnTo(9)
	assert.Equal(t, release.ReasonNoRevision, release.ReasonOf(err))
	assert.ErrorContains(t, err, "has no revision 9 in its history any more")

	w.alter("web", 1, w.addBinding)
	_, err = w.returnTo(1)
	assert.Equal(t, release.ReasonAltered, release.ReasonOf(err))
	w.assertNoBinding()
	assert.Equal(t, "three", w.greeting())
}
