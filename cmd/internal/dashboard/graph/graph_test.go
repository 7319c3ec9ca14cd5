package graph

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is drawn of a tree does not overlap, and parents are beside their children.
func TestLayered(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		levels []int
		edges  int
	}{
		"none":            {"there is nothing to draw", nil, 0},
		"one":             {"an object that nothing came of", []int{1}, 0},
		"a chain":         {"from commit to Pod", []int{1, 2, 3, 4}, 3},
		"several parents": {"lines are shared by none", []int{1, 2, 3, 3, 2, 3, 3, 3, 2}, 8},
		"two roots":       {"both are at the left", []int{1, 2, 1, 2, 2}, 3},
		"a gap":           {"a level that is missing", []int{1, 3, 3}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := Layered(tc.levels)
			require.Len(t, l.Boxes, len(tc.levels), tc.reason)
			assert.Len(t, l.Edges, tc.edges, tc.reason)
			for i, a := range l.Boxes {
				assert.LessOrEqual(t, a.X+a.Width, l.Width)
				assert.LessOrEqual(t, a.Y+a.Height, l.Height)
				for j, b := range l.Boxes[:i] {
					apart := a.X >= b.X+b.Width || b.X >= a.X+a.Width || a.Y >= b.Y+b.Height || b.Y >= a.Y+a.Height
					assert.True(t, apart, "%d and %d overlap: %s", i, j, tc.reason)
				}
			}
		})
	}
	chain := Layered([]int{1, 2, 3})
	assert.Equal(t, chain.Boxes[0].Y, chain.Boxes[2].Y, "a chain is a straight line")
	two := Layered([]int{1, 2, 2})
	assert.Equal(t, (two.Boxes[1].Y+two.Boxes[2].Y)/2, two.Boxes[0].Y, "a parent is in the middle")
}
