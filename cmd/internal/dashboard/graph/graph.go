// Package graph lays out trees in layers, from left to right.
package graph

// Sizes of what is drawn, in units of the drawing.
const (
	boxWidth, boxHeight = 220, 44
	gapX, gapY          = 50, 14
	margin              = 8
)

// Size of a drawing.
type Size struct{ Width, Height int }

// Box is where a node is drawn.
type Box struct{ X, Y, Width, Height int }

// Edge leads from the right of a node to the left of another: from (X1, Y1) to (X2, Y2), around the middle at XM.
type Edge struct{ X1, Y1, XM, X2, Y2 int }

// Layout is where everything is drawn.
type Layout struct {
	Size
	// Boxes are those of the nodes, in their order.
	Boxes []Box
	Edges []Edge
}

// Layered lays out a tree whose nodes are given from the top, parents before children, by their levels from 1, as a table
// shows it. Nodes of a level are in one layer; each leaf has a line of its own, and a parent is in the middle of its
// children, so that no edges cross.
func Layered(levels []int) Layout {
	l := Layout{Boxes: make([]Box, len(levels))}
	parents := make([]int, len(levels))
	var way []int // the nodes that lead to the one at hand
	for i, level := range levels {
		for len(way) > 0 && levels[way[len(way)-1]] >= level {
			way = way[:len(way)-1]
		}
		parents[i] = -1
		if len(way) > 0 {
			parents[i] = way[len(way)-1]
		}
		way = append(way, i)
	}
	first, last := make([]int, len(levels)), make([]int, len(levels)) // the centers of the first and the last child
	seen := make([]bool, len(levels))
	line := 0
	for i := range levels { // leaves take lines in their order
		if i+1 < len(levels) && parents[i+1] == i {
			continue
		}
		l.Boxes[i].Y = margin + line*(boxHeight+gapY)
		line++
	}
	for i := len(levels) - 1; i >= 0; i-- { // children come after their parents
		if seen[i] {
			l.Boxes[i].Y = (first[i] + last[i]) / 2
		}
		if p := parents[i]; p >= 0 {
			if !seen[p] {
				last[p], seen[p] = l.Boxes[i].Y, true
			}
			first[p] = l.Boxes[i].Y
		}
	}
	for i, level := range levels {
		b := &l.Boxes[i]
		b.X, b.Width, b.Height = margin+(max(level, 1)-1)*(boxWidth+gapX), boxWidth, boxHeight
		l.Width, l.Height = max(l.Width, b.X+b.Width+margin), max(l.Height, b.Y+b.Height+margin)
		if p := parents[i]; p >= 0 {
			from := l.Boxes[p]
			l.Edges = append(l.Edges, Edge{
				X1: from.X + from.Width, Y1: from.Y + from.Height/2, XM: (from.X + from.Width + b.X) / 2, X2: b.X, Y2: b.Y + b.Height/2,
			})
		}
	}
	return l
}
