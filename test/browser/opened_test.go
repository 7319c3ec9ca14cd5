package browser

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program has the browser open a file, which leads to the dashboard and has it let this browser in: the cookie of that is
// sent, although another site has led there.
func TestOpened_byTheFile(t *testing.T) {
	hub, _ := servers(t)
	path := t.TempDir()
	noted := filepath.Join(path, "noted")
	script := "#!/bin/sh\nprintf '%s' \"$1\" >" + noted + ".new && mv " + noted + ".new " + noted + "\n"
	for _, name := range []string{"xdg-open", "open"} {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte(script), 0o700))
	}
	t.Setenv("PATH", path+string(filepath.ListSeparator)+os.Getenv("PATH"))
	d := start(t, hub.RESTConfig(), hub.Namespace(t), "--no-browser=false")
	var opened []byte
	require.Eventually(t, func() bool {
		var err error
		opened, err = os.ReadFile(noted)
		return err == nil
	}, limit, often)

	b := newTab(t, d)
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.Navigate("file://"+string(opened)))
	require.NoError(t, err)
	b.await(`document.querySelector("nav")`)
	assert.Equal(t, d.address+"/", eval[string](b, "location.href"))
	require.Eventually(t, func() bool {
		_, err := os.Stat(string(opened))
		return os.IsNotExist(err)
	}, limit, often)
	assert.False(t, strings.Contains(eval[string](b, "document.referrer"), "token"))
}
