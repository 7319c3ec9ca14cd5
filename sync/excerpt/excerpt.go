package excerpt

import "strings"

const ellipsis = "..."

// Of returns text where it has no more than most bytes, and else as much of its beginning as fits
// with "..." after it. It never splits a rune, and what is no UTF-8 is left out of what it cuts.
// A most of less than three bytes has no room for the dots, which are left out then.
func Of(text string, most int) string {
	if len(text) <= most {
		return text
	}
	dots := ellipsis
	if most < len(dots) {
		dots = ""
	}
	return strings.ToValidUTF8(text[:max(most-len(dots), 0)], "") + dots
}
