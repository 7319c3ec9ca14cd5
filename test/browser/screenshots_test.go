package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestScreenshots takes pictures of all pages, for people to look at: `make screenshots`.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		t.Skip("SCREENSHOTS names no folder for pictures")
	}
	require.NoError(t, os.MkdirAll(folder, 0o755))
	w := fleet(t)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.expectsOfPages()
	for _, page := range pages {
		for _, look := range []struct {
			name  string
			width int64
			dark  bool
		}{{"light", 1280, false}, {"dark", 1280, true}, {"narrow", 390, false}} {
			b.size(look.width, 800)
			b.scheme(look.dark)
			b.visit(page.path)
			b.await("document.body.textContent.includes(" + quoted(page.has) + ")")
			b.await(`[...document.images].filter((i) => i.getBoundingClientRect().top < innerHeight).every((i) => i.complete && i.naturalWidth > 0)`)
			require.NotContains(t, b.text(), "takes too long", "the machine is too busy for pictures of page %s", page.name)
			picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(folder, page.name+"-"+look.name+".png"), reduced(t, picture), 0o644))
		}
	}
}

// reduced returns a picture with its 256 most frequent colours, which is a third as large and looks the same.
func reduced(t *testing.T, picture []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	size := full.Bounds()
	count := map[color.Color]int{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			count[full.At(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	few := image.NewPaletted(size, color.Palette(frequent[:min(256, len(frequent))]))
	index := map[color.Color]uint8{}
	for c := range count {
		index[c] = uint8(few.Palette.Index(c)) //nolint:gosec // there are 256 at most
	}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			few.SetColorIndex(x, y, index[full.At(x, y)])
		}
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few))
	return out.Bytes()
}
