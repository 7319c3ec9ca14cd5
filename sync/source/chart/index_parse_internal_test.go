package chart

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// K16
func TestParseIndex_readsWhatServersWrite(t *testing.T) {
	web := []release{{version: "1.0.0", url: "web.tgz", digest: "ab"}}
	two := append(web, release{version: "2.0.0", url: "web-2.tgz"})
	cases := map[string]struct {
		reason, text string
		want         map[string][]release
	}{
		"JSON": {
			"as Helm writes it on request",
			`{"apiVersion":"v1","entries":{"web":[{"version":"1.0.0","urls":["web.tgz"],"digest":"sha256:ab"}],"none":null,"db":[]},"generated":{"x":[1]}}`,
			map[string][]release{"web": web},
		},
		"Helm": {
			"the items are not indented, and a description has lines that look like something else",
			"apiVersion: v1\nentries:\n  none: []\n  web:\n  - dependencies:\n    - name: web\n      version: 9.0.0\n" +
				"    description: |-\n      entries:\n\n      # no remark\n      - version: 3.0.0\n    digest: ab\n    urls:\n    - web.tgz\n    version: 1.0.0\n" +
				"  - urls: [web-2.tgz, mirror.tgz]\n    version: 2.0.0\n  zebra:\n  - {version: 1.0.0}\ngenerated: \"2026-01-01T00:00:00Z\"\n",
			map[string][]release{"web": two},
		},
		"Indented": {
			"other servers indent items, begin a document, end lines for Windows, and write the version of the API last",
			"---\r\n# made by a server\r\n\"entries\":   # all of them\r\n    \"web\":\r\n        - \r\n          version: \"1.0.0\"\r\n          digest: ab\r\n" +
				"          urls:\r\n              - web.tgz\r\n\r\n        - version: 2.0.0\r\n          urls:\r\n              - web-2.tgz\r\nlist:\r\n- a\r\napiVersion: v1\r\n",
			map[string][]release{"web": two},
		},
		"QuotedLines": {
			"a quoted text goes on in lines that look like items",
			"entries:\n  web:\n  - description: \"a\n  - version: 3.0.0\n  x:\"\n    version: 1.0.0\n    digest: ab\n    urls: [web.tgz]\n",
			map[string][]release{"web": web},
		},
		"Flow": {
			"YAML that is neither JSON nor in lines",
			"{apiVersion: v1, entries: {web: [{version: 1.0.0, urls: [web.tgz], digest: ab},\n{version: 2.0.0, urls: [web-2.tgz]}]}}",
			map[string][]release{"web": two},
		},
		"Aliases": {
			"one piece refers to another",
			"apiVersion: v1\nentries:\n  web: &web\n  - {version: 1.0.0, urls: [web.tgz], digest: ab}\n  shop: *web\n",
			map[string][]release{"web": web, "shop": web},
		},
		"Number":        {"a version without quotes", "entries:\n  web:\n  - version: 1.0\n    urls: [web.tgz]\n", map[string][]release{"web": {{version: "1.0", url: "web.tgz"}}}},
		"ByteOrderMark": {"an editor for Windows has saved it", "\ufeffentries:\n  web:\n  - {version: 1.0.0, urls: [web.tgz], digest: ab}\napiVersion: v1\n", map[string][]release{"web": web}},
		"TaggedKey":     {"YAML reads a key that the text does not show", "apiVersion: v1\n!!str entries:\n  web:\n  - {version: 1.0.0, urls: [web.tgz], digest: ab}\n", map[string][]release{"web": web}},
		"EscapedKey":    {"YAML reads a key that the text does not show", "apiVersion: v1\n\"\\x65ntries\":\n  web:\n  - {version: 1.0.0, urls: [web.tgz], digest: ab}\n", map[string][]release{"web": web}},
		"Marks": {
			"where the document begins and ends is marked, with remarks",
			"%YAML 1.1\n# made by a server\n--- # of charts\nentries:\n  web:\n  - {version: 1.0.0, urls: [web.tgz], digest: ab}\n...\n# the end\n",
			map[string][]release{"web": web},
		},
		"Empty": {"a repository without charts", "apiVersion: v1\nentries: {}\n", map[string][]release{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			idx, err := parseIndex(strings.NewReader(tc.text), DefaultLimits())
			require.NoError(t, err, tc.reason)
			assert.Equal(t, tc.want, idx.charts, tc.reason)
		})
	}
}

// repeated yields text times over between head and tail, without holding it.
func repeated(head, text string, times int, tail string) io.ReadSeeker {
	return &repetition{parts: [3]string{head, strings.Repeat(text, 1000), tail}, times: int64(times / 1000)}
}

type repetition struct {
	parts [3]string
	times int64
	at    int64
}

func (r *repetition) size() int64 {
	return int64(len(r.parts[0])) + r.times*int64(len(r.parts[1])) + int64(len(r.parts[2]))
}

func (r *repetition) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		r.at = offset
	case io.SeekEnd:
		r.at = r.size() + offset
	}
	return r.at, nil
}

func (r *repetition) Read(p []byte) (int, error) {
	head, middle := int64(len(r.parts[0])), r.times*int64(len(r.parts[1]))
	n := 0
	switch {
	case r.at >= r.size():
		return 0, io.EOF
	case r.at < head:
		n = copy(p, r.parts[0][r.at:])
	case r.at < head+middle:
		n = copy(p, r.parts[1][(r.at-head)%int64(len(r.parts[1])):])
	default:
		n = copy(p, r.parts[2][r.at-head-middle:])
	}
	r.at += int64(n)
	return n, nil
}

// K47: the author of a chart chooses the repository of its dependencies.
func TestParseIndex_hugeIndexTakesLittleMemory(t *testing.T) {
	const many = 10_000_000
	limits := DefaultLimits()
	limits.IndexVersions = 10
	cases := map[string]struct {
		index io.ReadSeeker
		want  string
	}{
		"JSON":       {repeated(`{"apiVersion":"v1","entries":{"a":[`, "{},", many, "{}]}}"), "(IndexVersions)"},
		"JSONCharts": {repeated(`{"apiVersion":"v1","entries":{`, `"a":[{}],`, many, `"b":[{}]}}`), "(IndexVersions)"},
		"JSONURLs":   {repeated(`{"apiVersion":"v1","entries":{"a":[{"urls":[`, `"",`, many, `""]}]}}`), "(IndexEntryBytes)"},
		"JSONKey":    {repeated(`{"apiVersion":"v1","x":[`, "[],", many, "[]]}"), "(IndexEntryBytes)"},
		"JSONText":   {repeated(`{"apiVersion":"`, "v", many, `"}`), "(IndexEntryBytes)"},
		"Lines":      {repeated("apiVersion: v1\nentries:\n  a:\n", "  - {}\n", many, ""), "(IndexVersions)"},
		"LinesURLs":  {repeated("entries:\n  a:\n  - urls:\n", "    -\n", many, ""), "(IndexEntryBytes)"},
		"OneLine":    {repeated("apiVersion: v1\nentries: {a: [", "{},", many, "]}"), "(IndexVersions)"},
		"FlowLines":  {repeated("apiVersion: v1\nentries: {a: [\n", " {},\n", many, "]}"), "(IndexVersions)"},
		"Braces":     {repeated("{apiVersion: v1, entries: {a: [", "{},", many, "]}}"), "(IndexVersions)"},
		"FlowChart":  {repeated("entries:\n  a: [\n", "  {},\n", many, "{}]"), "(IndexVersions)"},
		"FlowText":   {repeated("{apiVersion: v1, entries: {a: [{version: '", "v", many, "'}]}}"), "(IndexEntryBytes)"},
		"FlowDeep":   {repeated("{apiVersion: v1, entries: {a: [", "[", many, "]}}"), "(IndexEntryBytes)"},
		"FlowKey":    {repeated("{apiVersion: v1, x: [", "[],", many, "[]]}"), "(IndexEntryBytes)"},
		"Comments":   {repeated("", "# more\n", many, "{}"), "neither apiVersion nor entries"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := parseIndex(tc.index, limits)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, ErrInvalidChart)
			assert.Contains(t, err.Error(), tc.want)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
		})
	}
}

// Public repositories have indexes of this size, which decoded at once take half a gigabyte.
func TestParseIndex_largeIndexIsReadPieceByPiece(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n")
	const charts, versions = 20, 100
	for i := range charts {
		fmt.Fprintf(&text, "  chart-%d:\n", i)
		for j := range versions {
			fmt.Fprintf(&text, "  - apiVersion: v2\n    description: |\n%s    urls:\n    - https://example.com/%d-%d.tgz\n    version: 1.%d.0\n",
				strings.Repeat("      a line of the description\n", 30), i, j, j)
		}
	}
	require.Greater(t, int64(text.Len()), DefaultLimits().IndexEntryBytes, "not decoded as a whole")
	idx, err := parseIndex(strings.NewReader(text.String()), DefaultLimits())
	require.NoError(t, err)
	require.Len(t, idx.charts, charts)
	for name, releases := range idx.charts {
		assert.Len(t, releases, versions, name)
	}
}

// Any YAML that says the same is an index, however large.
func TestParseIndex_largeIndexInFlowStyle(t *testing.T) {
	const versions = 2000
	list := func(format, separator string) string {
		var items []string
		for i := range versions {
			items = append(items, fmt.Sprintf(format, i, i))
		}
		return strings.Join(items, separator)
	}
	padding := strings.Repeat("x", 400)
	loose := list("{version: 1.%d.0, # "+padding+" }]\n description: \"it's {\\\"a, 'b'\", urls: ['https://example.com/#%d.tgz']}", ",\n")
	strict := list(`{"version":"1.%d.0","description":"`+padding+`","urls":["https://example.com/#%d.tgz"]}`, ",")
	cases := map[string]struct{ reason, text string }{
		"Document":   {"one without quotes", "# made by hand\n{apiVersion: v1, generated: '2026', entries: {none: [], web: [" + loose + ",]}}\n...\n# the end\n"},
		"Entries":    {"only the entries", "apiVersion: v1\nentries: { # all of them\n none: , web: [" + loose + "]}\ngenerated: x\n"},
		"Chart":      {"only the versions of a chart", "apiVersion: v1\nentries:\n  none: []\n  'web': [\n" + loose + "\n  ] # all of them\n  last:\n  - {}\ngenerated: x\n"},
		"OneLine":    {"all of it", "entries: {web: [" + strict + "]}\n"},
		"Commented":  {"JSON after a comment", "# made by a server\n{\"apiVersion\":\"v1\",\"entries\":{\"web\":[" + strict + "]}}\n"},
		"Marked":     {"JSON after the mark of a document", "---\n{\"entries\":{\"web\":[" + strict + "]}}\n"},
		"SameLine":   {"JSON beside the mark of a document", "\ufeff--- {\"entries\":{\"web\":[" + strict + "]}}\n"},
		"JSONAndEnd": {"JSON before the mark of its end", "{\"entries\":{\"web\":[" + strict + "]}}\n...\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			require.Greater(t, int64(len(tc.text)), DefaultLimits().IndexEntryBytes, "not decoded as a whole")
			idx, err := parseIndex(strings.NewReader(tc.text), DefaultLimits())
			require.NoError(t, err, tc.reason)
			require.Len(t, idx.charts["web"], versions, tc.reason)
			assert.Equal(t, release{version: "1.7.0", url: "https://example.com/#7.tgz"}, idx.charts["web"][7])
			assert.Len(t, idx.charts, 1, tc.reason)
		})
	}
}

func TestParseIndex_namesTheLineThatIsWrong(t *testing.T) {
	text := "apiVersion: v1\nentries:\n  web:\n  - version: [1.0.0\n  - version: 2.0.0\n" + strings.Repeat("# remark\n", 100_000)
	_, err := parseIndex(strings.NewReader(text), DefaultLimits())
	require.ErrorIs(t, err, ErrInvalidChart)
	assert.Contains(t, err.Error(), "before line 5: yaml:")
}

// FuzzParseIndex finds what an index that is decoded as a whole would say differently.
func FuzzParseIndex(f *testing.F) {
	f.Add(`{"apiVersion":"v1","entries":{"web":[{"version":"1.0.0","urls":["x"]}]}}`)
	f.Add("apiVersion: v1\nentries: {web: [null, {version: 1.0}]}")
	f.Add("apiVersion: v1\nentries:\n  web:\n  - version: 1.0\n    urls:\n    - x\n  db:\n    - version: 1\n      urls: [y]\nlist:\n- a\n")
	f.Add("x: \"\nentries:\n  web:\n  - version: 1.0\n    urls: [x]\ny: \"\napiVersion: v1")
	f.Add("# c\n--- {apiVersion: v1, entries: {web: [{version: 1.0, urls: ['x''s', \"]\\\"\"]}, # }\n null], ? db : []}}\n...\n")
	f.Add("apiVersion: v1\nentries:\n  web: [{version: 1.0, urls: [!!str 'a]', &b x#y]}]\n  db: [\n]\n")
	f.Fuzz(func(t *testing.T, text string) {
		idx, err := parseIndex(strings.NewReader(text), DefaultLimits())
		if err != nil {
			assert.ErrorIs(t, err, ErrInvalidChart)
			return
		}
		for name, releases := range idx.charts {
			for _, r := range releases {
				assert.NotEmpty(t, r.version)
				assert.NotEmpty(t, r.url)
				found, err := idx.find(name, r.version)
				assert.NoError(t, err)
				assert.Equal(t, r.version, found.version)
			}
		}
		var whole indexDocument
		if yaml.Unmarshal([]byte(text), &whole) != nil {
			return
		}
		b := newIndexBuilder(DefaultLimits())
		for name, entries := range whole.Entries {
			assert.NoError(t, b.add(name, entries...))
		}
		assert.Equal(t, b.index.charts, idx.charts)
	})
}

func TestParsedIndex_oneAtATime(t *testing.T) {
	cache, err := NewCache(t.TempDir())
	require.NoError(t, err)
	doc, digest := strings.NewReader("apiVersion: v1\nentries: {}\n"), [sha256.Size]byte{1}
	cache.parsing <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = cache.parsedIndex(ctx, doc, digest)
	require.ErrorIs(t, err, context.Canceled)
	<-cache.parsing
	_, err = cache.parsedIndex(t.Context(), doc, digest)
	require.NoError(t, err)
}
