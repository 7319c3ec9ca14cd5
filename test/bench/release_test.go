package bench

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
)

// bareRelease returns what Helm creates for a release of the chart `sized`: its objects, and the
// Secret of the release.
func bareRelease(b *testing.B, namespace string, run int) []string {
	b.Helper()
	chart, err := loader.Load("testdata/sized")
	require.NoError(b, err)
	return bareReleaseOf(b, chart, namespace, run)
}

// bareReleaseOf is bareRelease for any chart.
func bareReleaseOf(b *testing.B, chart *chart.Chart, namespace string, run int) []string {
	b.Helper()
	install := action.NewInstall(&action.Configuration{Capabilities: chartutil.DefaultCapabilities})
	install.ReleaseName, install.Namespace = definition, namespace
	install.ClientOnly, install.DryRun = true, true
	rendered, err := install.RunWithContext(b.Context(), chart, runValues(run))
	require.NoError(b, err)
	var manifests []string
	for manifest := range strings.SplitSeq(rendered.Manifest, "---\n") {
		if strings.TrimSpace(manifest) != "" {
			manifests = append(manifests, manifest)
		}
	}
	return append(manifests, releaseSecret(b, namespace, run, rendered))
}

// releaseSecret returns a Secret of the same size as Helm's own: JSON, compressed, in base64.
func releaseSecret(b *testing.B, namespace string, run int, rendered *release.Release) string {
	b.Helper()
	whole, err := json.Marshal(rendered)
	require.NoError(b, err)
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, err = w.Write(whole)
	require.NoError(b, err)
	require.NoError(b, w.Close())
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: release.v%d\n  namespace: %s\ntype: Opaque\nstringData:\n  release: %s\n",
		run, namespace, base64.StdEncoding.EncodeToString(compressed.Bytes()))
}
