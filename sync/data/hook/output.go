package hook

import "strings"

// oneLine returns a text as valid UTF-8 without control characters: it ends up in a status and in terminals.
func oneLine(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(clean), " ")
}
