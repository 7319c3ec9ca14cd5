package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFinder_replace(t *testing.T) {
	for reason, tc := range map[string]struct {
		texts      []string
		text, want string
	}{
		"nothing is looked for":         {nil, "text", "text"},
		"it is not there":               {[]string{"ab"}, "a b", "a b"},
		"all of it":                     {[]string{"ab"}, "ab", "*"},
		"twice":                         {[]string{"ab"}, "xabyab", "x*y*"},
		"one after the other":           {[]string{"ab"}, "abab", "**"},
		"one overlaps itself":           {[]string{"aba"}, "ababa", "*"},
		"two overlap":                   {[]string{"abc", "cde"}, "xabcdex", "x*x"},
		"one begins like another":       {[]string{"ab", "abcd"}, "abc abcd", "*c *"},
		"one ends like another":         {[]string{"cd", "abcd"}, "bcd abcd", "b* *"},
		"one is within another":         {[]string{"bc", "abcd"}, "abc abcd", "a* *"},
		"the end of one begins another": {[]string{"aab", "abc"}, "aaabc", "a*"},
		"bytes of no letter":            {[]string{"\xff\x00"}, "é\xff\x00é", "é*é"},
	} {
		assert.Equal(t, tc.want, newFinder(tc.texts).replace(tc.text, "*"), reason)
	}
}

// What overlaps is hidden in whole, in any text and whatever is looked for.
func FuzzFinder(f *testing.F) {
	f.Add("aabab", "ab", "ba")
	f.Add("abcabcd", "abcd", "bc")
	f.Fuzz(func(t *testing.T, text, a, b string) {
		hidden := make([]bool, len(text))
		for _, part := range []string{a, b} {
			for i := range len(text) {
				if part != "" && strings.HasPrefix(text[i:], part) {
					for j := range len(part) {
						hidden[i+j] = true
					}
				}
			}
		}
		found := make([]bool, len(text))
		for _, s := range newFinder([]string{a, b}).find(text) {
			for i := s.from; i < s.to; i++ {
				found[i] = true
			}
		}
		assert.Equal(t, fmt.Sprint(hidden), fmt.Sprint(found))
	})
}
