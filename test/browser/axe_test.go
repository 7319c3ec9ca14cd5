package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/test/env"
)

// The release of axe-core that pages are checked by, and what its package must be.
const (
	axeVersion   = "4.14.1"
	axeIntegrity = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==" // SHA-512
)

// axe returns the source of axe-core. It is not part of this repository: npm fetches it once into bin.
func axe(t testing.TB) string {
	t.Helper()
	source, err := loadAxe()
	needs(t, err)
	return source
}

var loadAxe = sync.OnceValues(func() (string, error) {
	root, err := env.Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "npm")
	archive := filepath.Join(dir, "axe-core-"+axeVersion+".tgz")
	if _, err := os.Stat(archive); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		// Registries may be slow: npm asks again, with pauses.
		pack := exec.Command("npm", "pack", "--silent", "--fetch-retries=5", "axe-core@"+axeVersion, "--pack-destination="+dir)
		if out, err := pack.CombinedOutput(); err != nil {
			return "", fmt.Errorf("these tests need axe-core, which npm fetches: %w: %s", err, out)
		}
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		return "", err
	}
	if sum := sha512.Sum512(content); base64.StdEncoding.EncodeToString(sum[:]) != axeIntegrity {
		return "", fmt.Errorf("%s is not axe-core %s as it was published", archive, axeVersion)
	}
	return extract(content, "package/axe.min.js")
})

func extract(archive []byte, name string) (string, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return "", err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("axe-core has no %s", name)
		}
		if err != nil {
			return "", err
		}
		if header.Name == name {
			content, err := io.ReadAll(files)
			return string(content), err
		}
	}
}

// violations has axe-core look for what WCAG 2.2 A and AA forbid, and says what and where.
const violations = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]}).then(
	(found) => found.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 5).map((n) => "    " + n.html.slice(0, 200) + "\n    " + n.failureSummary.replaceAll("\n", " ")).join("\n")))`

// check finds what is wrong with the page as it is now.
func (b *tab) check() {
	b.t.Helper()
	eval[chromedp.Void](b, axe(b.t)+"; null")
	found := eval[[]string](b, violations, chromedp.EvalAwaitPromise)
	at := eval[string](b, "location.pathname")
	assert.Empty(b.t, strings.Join(found, "\n"), "%s breaks rules of accessibility", at)
	assert.Zero(b.t, eval[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"),
		"%s is wider than the window of %d pixels", at, eval[int](b, "innerWidth"))
}
