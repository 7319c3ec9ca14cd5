package excerpt

import "strings"

const ellipsis = "..."

// Of returns text if it has at most most bytes, and otherwise as much of its beginning as fits,
// followed by "...". It never splits a rune, and removes invalid UTF-8 from what it shortens. If
// most is less than three bytes, the dots are left out.
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
