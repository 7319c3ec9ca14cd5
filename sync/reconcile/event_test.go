package reconcile_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// The API server refuses notes past 1024 bytes, and what is no UTF-8 is mangled.
func TestFinish_tellsNoMoreThanAnEventHolds(t *testing.T) {
	w := newWorld(t, newGitSync())
	_, err := w.begin(w.get(t)).Finish(t.Context(), reconcile.Outcome{Message: "a" + strings.Repeat("ä", 600)}, nil)
	require.NoError(t, err)
	note := strings.TrimPrefix(<-w.events.Events, "Normal Succeeded ")
	assert.LessOrEqual(t, len(note), 1024)
	assert.Greater(t, len(note), 1000)
	assert.True(t, utf8.ValidString(note))
	assert.NotContains(t, note, string(utf8.RuneError))
}

// Of work that goes on only what comes of it is an event.
func TestFinish_tellsNotThatWorkGoesOn(t *testing.T) {
	cases := map[string]struct {
		reason  string
		outcome reconcile.Outcome
		want    int
	}{
		"Progressing": {"what comes of it is told", reconcile.Outcome{Unknown: v1alpha1.ProgressingReason, Message: "1 of 2"}, 0},
		"Suspended":   {"somebody has asked for it", reconcile.Outcome{Unknown: v1alpha1.SuspendedReason, Message: "suspended"}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newGitSync())
			_, err := w.begin(w.get(t)).Finish(t.Context(), tc.outcome, nil)
			require.NoError(t, err)
			assert.Len(t, w.events.Events, tc.want, tc.reason)
			_, err = w.begin(w.get(t)).Finish(t.Context(), reconcile.Outcome{Message: "applied"}, nil)
			require.NoError(t, err)
			assert.Len(t, w.events.Events, tc.want+1, "what came of it")
		})
	}
}

func TestTell_recordsAnEventOfTheObject(t *testing.T) {
	w := newWorld(t, newGitSync())
	w.begin(w.get(t)).Tell(reconcile.Event{Type: corev1.EventTypeWarning, Reason: v1alpha1.DeleteFailedReason, Action: "Abandon", Note: "100% let go"})
	assert.Equal(t, "Warning DeleteFailed 100% let go", <-w.events.Events)
	assert.Zero(t, w.writes, "the status has nothing to do with it")
}
