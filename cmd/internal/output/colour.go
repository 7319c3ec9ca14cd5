package output

import (
	"strings"
)

const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	reset  = "\x1b[0m"
)

// colours of the words in columns that show a state.
var colours = map[string]string{
	"True": green, "true": green, "Current": green, "Ready": green,
	"Unknown": yellow, "InProgress": yellow, "Terminating": yellow, "Suspended": yellow,
	"False": red, "false": red, "Failed": red, "NotFound": red, "NotReady": red, "Unreachable": red,
}

// coloured lists the columns whose words are coloured.
var coloured = map[string]bool{"READY": true, "HEALTH": true, "REACHABLE": true}

// colour colours a printed table, whose first line holds the column names. It works on the printed
// text, because escape codes in cells would be shown, and counted when columns are aligned.
func colour(text string) string {
	header, rows, _ := strings.Cut(text, "\n")
	spans := columnSpans([]rune(header))
	var b strings.Builder
	b.WriteString(header + "\n")
	for line := range strings.Lines(rows) {
		b.WriteString(colourLine([]rune(line), spans))
	}
	return b.String()
}

// span is the position of a column in each line, in runes; end is -1 for the last one.
type span struct{ start, end int }

func columnSpans(header []rune) []span {
	var spans []span
	start := 0
	for start < len(header) {
		end := start
		for end < len(header) && header[end] != ' ' {
			end++
		}
		next := end
		for next < len(header) && header[next] == ' ' {
			next++
		}
		if coloured[string(header[start:end])] {
			s := span{start: start, end: next}
			if next == len(header) {
				s.end = -1
			}
			spans = append(spans, s)
		}
		start = next
	}
	return spans
}

func colourLine(line []rune, spans []span) string {
	var b strings.Builder
	at := 0
	for _, s := range spans {
		if s.start >= len(line) {
			break
		}
		end := s.end
		if end < 0 || end > len(line) {
			end = len(line)
		}
		cell := string(line[s.start:end])
		word := strings.TrimSpace(cell)
		b.WriteString(string(line[at:s.start]))
		if code := colours[word]; code != "" {
			cell = strings.Replace(cell, word, code+word+reset, 1)
		}
		b.WriteString(cell)
		at = end
	}
	b.WriteString(string(line[at:]))
	return b.String()
}
