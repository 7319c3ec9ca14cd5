package excerpt

import "strings"

// Line returns a text of several lines as one line, in which nothing but line breaks, indentation and
// bullets is missing: kubectl shows a message only up to the first line break, and what follows it is
// often the cause. Lines are separated by semicolons, unless one ends with a colon or other
// punctuation, as a headline does.
func Line(text string) string {
	if !strings.ContainsAny(text, "\n\r\f\v\t") {
		return text
	}
	var b strings.Builder
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\n\r\f\v", r) }) {
		line = strings.Join(strings.Fields(line), " ")
		line = strings.TrimPrefix(strings.TrimPrefix(line, "* "), "- ")
		if line == "" || line == "*" || line == "-" {
			continue
		}
		if b.Len() > 0 {
			if !strings.ContainsRune(":;,.([{", rune(b.String()[b.Len()-1])) {
				b.WriteByte(';')
			}
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}
