package dashboard

import (
	"strconv"
	"strings"

	"waybill.dev/waybill/cmd/internal/diff"
)

const (
	// maxCompared is how many objects of a comparison are shown, and maxDiffLines how many lines of all.
	maxCompared  = 300
	maxDiffLines = 5000
)

// comparison is how objects would change, as a page shows it.
type comparison struct {
	Objects []comparedObject
	// Summary counts them, in words, and Omitted what could not be compared.
	Summary string
	Omitted int
	// More is how many objects are not shown.
	More int
	// Failure says why it is not known what would become of what an installation installs; empty if it is.
	Failure string
}

// comparedObject is how one object would change.
type comparedObject struct {
	Kind, Namespace, Name, Cluster string
	Action                         string
	Mark                           mark
	Note                           string
	Lines                          []diffLine
}

// diffLine is a line of a difference. The class says what became of it, as its first character does.
type diffLine struct{ Class, Text string }

var actionMarks = map[diff.Action]mark{
	diff.Created: {"ready", "+", "created"}, diff.Changed: {"unknown", "~", "changed"}, diff.Deleted: {"failing", "−", "deleted"},
	diff.Refused: {"failing", "✗", "refused"}, diff.Kept: {"paused", "‖", "kept"}, diff.Recreated: {"failing", "↻", "deleted and created again"},
}

func compared(c *diff.Comparison, hides *curtain) *comparison {
	shown := &comparison{Omitted: c.Omitted, More: max(0, len(c.Results)-maxCompared)}
	var counts []string
	for _, a := range []diff.Action{diff.Created, diff.Changed, diff.Recreated, diff.Deleted, diff.Refused} {
		if n := c.Count(a); n > 0 {
			counts = append(counts, strconv.Itoa(n)+" "+actionMarks[a].Words)
		}
	}
	shown.Summary = strings.Join(append(counts, strconv.Itoa(c.Same())+" as they are"), ", ")
	left := maxDiffLines
	for _, r := range c.Results[:len(c.Results)-shown.More] {
		lines := diffLines(r.Diff, left)
		left -= len(lines)
		shown.Objects = append(shown.Objects, comparedObject{
			Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Cluster: r.Cluster, Action: string(r.Action), Mark: actionMarks[r.Action], Note: hides.strikes.from(r.Note), Lines: lines,
		})
	}
	return shown
}

// diffLines returns the lines of a unified difference, at most so many.
func diffLines(text string, most int) []diffLine {
	var lines []diffLine
	for line := range strings.Lines(text) {
		if len(lines) >= most {
			return append(lines, diffLine{"hunk", "… and more"})
		}
		class := "same"
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
			class = "hunk"
		case strings.HasPrefix(line, "+"):
			class = "added"
		case strings.HasPrefix(line, "-"):
			class = "removed"
		}
		lines = append(lines, diffLine{class, strings.TrimRight(line, "\n")})
	}
	return lines
}
