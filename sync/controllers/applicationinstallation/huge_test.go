package applicationinstallation_test

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// incompressible is text of that many bytes that gzip makes no shorter by much.
func incompressible(size int) string {
	random := rand.NewChaCha8([32]byte{})
	content := make([]byte, size*3/4)
	_, _ = random.Read(content) // never fails
	return base64.StdEncoding.EncodeToString(content)
}

// K53, C34: what is larger than an API server stores is named, whether it is an object of a
// chart or Helm's record of the release, and nothing is left behind that cannot be uninstalled.
func TestInstallation_hugeObjectsAreNamed(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		says   string
	}{
		"object": {"a limit of the kind", strings.Repeat("x", 1200<<10), "ConfigMap \"huge\" is invalid"},
		"record": {"Helm keeps all manifests in one Secret", incompressible(1000 << 10), "record release"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			version := "0.9.0-" + name
			_, err := w.repo.Push(charts+"web", func(c *chart.Chart) {
				c.Metadata.Version = version
				c.Templates = append(c.Templates, &chart.File{
					Name: "templates/huge.yaml",
					Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: huge}\ndata: {text: \"" + tc.text + "\"}\n"),
				})
			})
			require.NoError(t, err)
			w.define(func(d *v1alpha1.ApplicationDefinitionSpec) { d.Versions[0].Template.Source = w.webSource(version) })
			inst := w.install(nil)
			message := hub.AwaitReason(w.World, inst, v1alpha1.InstallFailedReason)
			assert.Contains(t, message, tc.says, tc.reason)
			assert.Less(t, len(message), 2000, "what is too large is not repeated")

			hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
			hub.AwaitReady(w.World, inst)
			require.NoError(t, w.Client.Delete(t.Context(), inst))
			w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
			assert.Empty(t, w.releases("web"))
			assert.False(t, w.Exists(&corev1.ConfigMap{}, "huge"))
		})
	}
}
