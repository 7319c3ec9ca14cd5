package diff

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"
)

// Unified returns the difference between two texts, which the names stand for, as a unified one with three lines around each
// change; empty if they are equal. Their size bounds what it takes: it matches the lines that are once in both texts, and what
// is next to them. The least difference would take a time that grows with the square of the size, or its cube.
func Unified(oldName, old, newName, new string) string {
	found := diff.Diff(oldName, []byte(old), newName, []byte(new))
	_, found, _ = bytes.Cut(found, []byte("\n")) // the first line is the command of patches
	return string(found)
}
