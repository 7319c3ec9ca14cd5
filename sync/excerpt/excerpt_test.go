package excerpt_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/excerpt"
)

func TestOf_fitsAndIsReadable(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		most   int
		want   string
		reason string
	}{
		"short":        {"ready", 8, "ready", "what fits is left alone"},
		"exact":        {"ready to go", 11, "ready to go", "the limit itself fits"},
		"long":         {"ready to go", 8, "ready...", "the dots are within the limit"},
		"split rune":   {"größer", 6, "gr...", "half a rune is left out"},
		"whole rune":   {"größer!", 7, "grö...", "a whole one is kept"},
		"four bytes":   {"a🚢🚢🚢", 8, "a🚢...", "also of those that take four bytes"},
		"only dots":    {"ready", 3, "...", "there is room for nothing else"},
		"no room":      {"ready", 2, "re", "there is no room for dots"},
		"nothing":      {"ready", 0, "", "there is no room at all"},
		"below zero":   {"ready", -1, "", "there is no room at all"},
		"no beginning": {"🚢🚢", 4, "...", "not even one rune fits with the dots"},
	} {
		assert.Equal(t, c.want, excerpt.Of(c.text, c.most), "%s: %s", name, c.reason)
	}
}

func FuzzOf(f *testing.F) {
	f.Add(strings.Repeat("ä", 600), 1024)
	f.Add("größer", 4)
	f.Fuzz(func(t *testing.T, text string, most int) {
		got := excerpt.Of(text, most)
		assert.LessOrEqual(t, len(got), max(most, 0))
		if utf8.ValidString(text) {
			assert.True(t, utf8.ValidString(got))
		}
	})
}
