package release_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/render/helm"
)

// Helm gets what was rendered elsewhere, and records the chart and the values that it was rendered from: who
// goes on by hand finds them.
func TestEnsure_recordsChartAndValues(t *testing.T) {
	for _, name := range []string{"web", "hooked", "parent"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := w.desired(name, values{"extra": values{"list": []any{"a", nil}}})
			w.ensure(d)
			found, err := w.helm().Releases.Last(d.Name)
			require.NoError(t, err)
			assert.Equal(t, d.Values, found.Config)
			assert.Equal(t, d.Chart.Templates, found.Chart.Templates)
			assert.Equal(t, d.Chart.Metadata.Name, found.Chart.Metadata.Name)

			dry := action.NewInstall(w.helm())
			dry.ReleaseName, dry.Namespace, dry.DryRun, dry.Replace = d.Name, w.namespace, true, true
			dry.PostRenderer = d.Stamp()
			wanted, err := dry.Run(helm.Clone(d.Chart), helm.MergeValues(d.Values))
			require.NoError(t, err)
			assert.Equal(t, wanted.Manifest, found.Manifest)
			assert.Equal(t, wanted.Info.Notes, found.Info.Notes)
			assert.Len(t, found.Hooks, len(wanted.Hooks))
			assert.JSONEq(t, asJSON(t, wanted.Chart), asJSON(t, found.Chart))
			for i, hook := range wanted.Hooks {
				assert.Equal(t, hook.Path, found.Hooks[i].Path)
				assert.Equal(t, hook.Manifest, found.Hooks[i].Manifest)
			}
		})
	}
}

// What looks like a template in what was rendered, such as a dashboard or an alert, is text.
func TestEnsure_leavesTemplatesInTheResult(t *testing.T) {
	w := newWorld(t)
	const alert = `{{- $labels.instance }} of {{"{{"}} {{/* x */}} is {{ printf "%s" $value -}} {{{`
	d := w.template("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: alerts}\ndata:\n  alert: {{ .Values.alert | quote }}\n")
	d.Values = values{"alert": alert}
	w.ensure(d)
	found, err := w.configMap("alerts")
	require.NoError(t, err)
	assert.Equal(t, alert, found.Data["alert"])
}

// Templates look objects up through the engine, with the rights of the target.
func TestEnsure_templatesLookUpObjects(t *testing.T) {
	w := newWorld(t)
	_, err := w.client.CoreV1().Services(w.namespace).Create(t.Context(), service("there"), metav1.CreateOptions{})
	require.NoError(t, err)
	d := w.template(`apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data:
  port: {{ (index (lookup "v1" "Service" .Release.Namespace "there").spec.ports 0).port | quote }}
  all: {{ range (lookup "v1" "Service" .Release.Namespace "").items }}{{ .metadata.name }}{{ end }}
  none: {{ lookup "apps/v1" "Deployment" .Release.Namespace "missing" | toJson | quote }}
  install: {{ .Release.IsInstall | quote }}
  revision: {{ .Release.Revision | quote }}
`)
	d.Options.Lookup = true
	w.ensure(d)
	found, err := w.configMap("seen")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"port": "80", "all": "there", "none": "{}", "install": "true", "revision": "1"}, found.Data)
}

// A chart that grows without end is an error of the chart, and what it cannot be blamed for is tried again.
func TestEnsure_renderingFails(t *testing.T) {
	w := newWorld(t)
	_, err := w.try(t.Context(), w.template(`{{ repeat 2000000000 "a" }}`))
	assert.Equal(t, release.ReasonRender, release.ReasonOf(err))
	assert.ErrorContains(t, err, "rendering chart one 1.0.0 takes more memory than it may (384Mi)")
	assert.Empty(t, w.revisions("one"), "nothing was recorded")

	w.engine = release.NewEngine().RenderedBy(killed{})
	_, err = w.try(t.Context(), w.template("a: b"))
	assert.Equal(t, release.ReasonUnavailable, release.ReasonOf(err))
	assert.False(t, release.IsTerminal(err))
}

// Rendering ends when the chart is not wanted any more, or the action ends.
func TestEnsure_endsRendering(t *testing.T) {
	w := newWorld(t)
	endless := w.template(`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`)
	unwanted := make(chan struct{})
	endless.Unwanted = unwanted
	time.AfterFunc(100*time.Millisecond, func() { close(unwanted) })
	_, err := w.try(t.Context(), endless)
	assert.Equal(t, release.ReasonInterrupted, release.ReasonOf(err))
	assert.ErrorContains(t, err, "no longer wanted")

	endless.Unwanted = nil
	endless.Options.Timeout = 100 * time.Millisecond
	_, err = w.try(t.Context(), endless)
	assert.Equal(t, release.ReasonRender, release.ReasonOf(err))
	assert.ErrorContains(t, err, "rendering chart one 1.0.0 takes longer than it may (100ms)")

	endless.Options.Timeout = 0
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err = w.try(ctx, endless)
	assert.Equal(t, release.ReasonInterrupted, release.ReasonOf(err))
}

// killed is a renderer whose processes end.
type killed struct{}

func (killed) Render(context.Context, *chart.Chart, helm.Options) (*helm.Rendered, error) {
	return nil, errors.New("signal: killed")
}

func (killed) Validate(context.Context, *chart.Chart, map[string]any) (*helm.Checked, error) {
	return &helm.Checked{}, nil
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
