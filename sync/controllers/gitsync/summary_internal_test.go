package gitsync

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/manifest"
)

// P12: each problem is counted among what it is about.
func TestSummarize(t *testing.T) {
	broken, refused := manifest.Problem{File: "a.yaml", Message: "broken"}, manifest.Problem{File: "b.yaml", Message: "refused"}
	left := manifest.Problem{Removal: true, Message: "in use"}
	for want, tc := range map[string]struct {
		problems    []manifest.Problem
		unread, all int
	}{
		"1 of 7 objects cannot be applied: b.yaml: refused": {[]manifest.Problem{refused}, 0, 7},
		"1 of 1 object cannot be applied: b.yaml: refused":  {[]manifest.Problem{refused}, 0, 1},
		"1 object cannot be deleted: in use":                {[]manifest.Problem{left}, 0, 7},
		"3 objects cannot be deleted: in use (and 2 more)":  {[]manifest.Problem{left, left, left}, 0, 0},
		"1 manifest cannot be used: a.yaml: broken":         {[]manifest.Problem{broken}, 1, 7},
		"2 manifests cannot be used, 1 of 7 objects cannot be applied, 1 object cannot be deleted: a.yaml: broken (and 3 more)": {
			[]manifest.Problem{broken, broken, refused, left}, 2, 7},
	} {
		assert.Equal(t, want, summarize(tc.problems, tc.unread, tc.all))
	}
}
