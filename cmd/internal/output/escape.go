package output

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes a line that others wrote safe to print: control characters, with which it could steer
// the terminal, and those that change the order in which text is shown, become visible. Tabs stay, and
// line breaks become blanks.
func Escape(line string) string {
	if !strings.ContainsFunc(line, steers) {
		return line
	}
	var b strings.Builder
	for _, r := range line {
		switch {
		case r == '\n' || r == '\r':
			b.WriteByte(' ')
		case r < ' ':
			b.WriteString("^" + string(r+'@')) // ^[ for an escape character, as less and vi show it
		case steers(r) && r != utf8.RuneError:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r) // also in place of bytes that are not UTF-8
		}
	}
	return b.String()
}

// steers reports whether a terminal may do something else with a character than show it. Bytes that are
// not UTF-8 are among them: to some terminals, they are control characters of eight bits.
func steers(r rune) bool {
	return r != '\t' && unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r)
}
