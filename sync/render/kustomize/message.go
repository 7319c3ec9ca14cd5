package kustomize

import (
	"regexp"
	"strings"
)

// secrets are the parts of kustomize's errors that repeat what a file holds, which may be secret, or
// that differ from one build to the next, with what stands in their place. The text is one line.
var secrets = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile("with config: `.*`: "), "with config: ... : "},
	{regexp.MustCompile(`\[patch: "(?:[^"\\]|\\.)*"\]`), "an inline patch"},
	{regexp.MustCompile(`merging from generator &\{[^}]*\}`), "merging from generator"},
	{regexp.MustCompile("!!\\w+ `[^`]*`"), "a value"},
	{regexp.MustCompile(
		`(literal sources \[|invalid literal source |invalid utf8 bytes|decoding |JsonOp=|Patch=|\[patch: |must specify a target for patch |` +
			`in object |node contents:|value: \{|out of bounds for value |must specify one of patch and path in|patch and path can't be set at the same time|` +
			"with config: `" + `).*`), "$1 ..."},
}

// tidy turns a kustomize error, which repeats everything down to the cause, into one line that holds
// no content of files: of a long one it keeps the beginning and the end.
func tidy(err error) string {
	const head, tail = 200, 800
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, s := range secrets {
		text = s.pattern.ReplaceAllString(text, s.instead)
	}
	if len(text) > head+tail {
		text = text[:head] + " ... " + text[len(text)-tail:]
	}
	return strings.ToValidUTF8(text, "")
}
