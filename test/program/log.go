package program

import "strings"

// Tail returns the last lines of a log.
func Tail(log string, lines int) string {
	all := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
