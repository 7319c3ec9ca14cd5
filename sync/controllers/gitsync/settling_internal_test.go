package gitsync

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
)

// That objects are not healthy yet is not worth a write at once; anything else is.
func TestSettling(t *testing.T) {
	now := time.Now()
	cases := map[string]struct {
		reason string
		since  time.Time
		change func(*v1alpha1.GitSyncStatus)
		waits  bool
	}{
		"healthy":       {"nothing is waited for", time.Time{}, func(*v1alpha1.GitSyncStatus) {}, false},
		"just applied":  {"most objects are healthy at once", now, func(*v1alpha1.GitSyncStatus) {}, true},
		"for long":      {"somebody wonders", now.Add(-settlesWithin), func(*v1alpha1.GitSyncStatus) {}, false},
		"new revision":  {"the last write tells it", now, func(s *v1alpha1.GitSyncStatus) { s.AttemptedRevision = "main@sha1:b" }, true},
		"new inventory": {"it must not be lost", now, func(s *v1alpha1.GitSyncStatus) { s.Inventory = &v1alpha1.Inventory{Count: 2} }, false},
		"new problem":   {"is told at once", now, func(s *v1alpha1.GitSyncStatus) { s.ProblemCount = 1 }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			gs := &v1alpha1.GitSync{Status: v1alpha1.GitSyncStatus{AttemptedRevision: "main@sha1:a"}}
			before := gs.Status.DeepCopy()
			c.change(&gs.Status)
			s := &scope{gs: gs, session: &session{sick: sickness{since: c.since}}}
			assert.Equal(t, c.waits, s.settling(before) > 0, c.reason)
		})
	}
}
