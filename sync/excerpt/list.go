package excerpt

import (
	"fmt"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Amount returns a number as people read it: 20,000.
func Amount(n int) string { return message.NewPrinter(language.English).Sprintf("%d", n) }

// Count returns a number with its noun, whose plural ends in s: "1 object", "20,000 objects".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Amount(n) + " " + noun + "s"
}

// Names joins at most most names with commas, and says how many more there are: "a, b and 2 more".
func Names(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Texts joins at most most texts with a separator, and says after another one how many more there
// are: "no such host; timed out; and 2 more".
func Texts(texts []string, separator string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:most], separator), separator, len(texts)-most)
}

// AndMore returns " (and 2 more)", to follow what is shown of a list; empty if more is not positive.
func AndMore(more int) string {
	if more <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", more)
}
