package browser

import (
	"os"
	"path/filepath"
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
			picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(folder, page.name+"-"+look.name+".png"), picture, 0o600))
		}
	}
}
