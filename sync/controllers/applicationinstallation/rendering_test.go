package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// rendering makes an installation `bomb` of a chart with one template.
func (w *world) rendering(version, template string) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	_, err := w.repo.Push(charts+"web", func(c *chart.Chart) {
		c.Metadata.Version, c.Schema = version, nil
		c.Templates = []*chart.File{{Name: "templates/all.yaml", Data: []byte(template)}}
	})
	require.NoError(w.T, err)
	w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
		d.Versions = append(d.Versions, v1alpha1.ApplicationVersion{
			Version: version, Template: &v1alpha1.ApplicationTemplate{Source: w.webSource(version)},
		})
	})
	inst := &v1alpha1.ApplicationInstallation{ObjectMeta: objectMeta("bomb")}
	inst.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: w.Namespace, Version: version}
	inst.Spec.Values = values(w.T, map[string]any{"x": "{{ tpl .Values.x . }}"})
	w.Create(inst)
	return inst
}

// endless takes hours, and no memory.
const endless = `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`

// A chart that grows without end is an error of its own installation, which says what to look for: this
// process, and what others install, go on.
func TestInstallation_chartsThatGrowWithoutEnd(t *testing.T) {
	cases := map[string]struct{ reason, template, says string }{
		"recursion": {"a value calls itself", "{{ tpl .Values.x . }}", "look for templates"},
		"repeat":    {"one text, at once", `{{ repeat 2000000000 "a" }}`, "more memory than it may (256Mi)"},
		"range":     {"many objects", `{{ range until 20000000 }}{{ printf "a%d: b" . }}{{ "\n" }}{{ end }}`, "more memory than it may (256Mi)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			bomb := w.rendering("0.1.0-"+name, c.template)
			other := w.install(nil)
			message := hub.AwaitReason(w.World, bomb, v1alpha1.InvalidChartReason)
			assert.Contains(t, message, "rendering chart web 0.1.0-"+name, c.reason)
			assert.Contains(t, message, c.says, c.reason)
			assert.Nil(t, bomb.Status.Rendering, "it has ended")
			assert.Empty(t, w.releases("bomb"))
			hub.AwaitReady(w.World, other)
		})
	}
}

// While a chart is rendered, the status names it, others are installed, and deleting the installation
// ends it.
func TestInstallation_deletingItEndsItsRendering(t *testing.T) {
	w := newWorld(t)
	inst := w.rendering("0.1.0-endless", endless)
	hub.Await(w.World, inst, "the status names what is rendered", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Rendering != nil && i.Status.Rendering.Chart == "web-0.1.0-endless" && i.Status.Rendering.Attempts == 1
	})
	hub.AwaitReady(w.World, w.install(nil))
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "bomb")
}

// A chart that is not wanted any more is not rendered to its end.
func TestInstallation_changingItEndsItsRendering(t *testing.T) {
	w := newWorld(t)
	inst := w.rendering("0.1.0-changed", endless)
	hub.Await(w.World, inst, "it is being rendered", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Rendering != nil })
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.ApplicationRef.Version, i.Spec.Values = "1.0.0", nil
	})
	assert.Nil(t, hub.AwaitReady(w.World, inst).Status.Rendering)
}

// What was being rendered when that was interrupted, as by a crash, waits its turn, and says so.
func TestInstallation_whatWasInterruptedWaitsItsTurn(t *testing.T) {
	w := newWorld(t)
	inst := w.rendering("0.1.0-interrupted", endless)
	hub.Await(w.World, inst, "it is being rendered", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Rendering != nil })
	engageAnew()
	message := hub.AwaitReason(w.World, inst, v1alpha1.RenderingInterruptedReason)
	assert.Contains(t, message, "chart web-0.1.0-interrupted was interrupted")
	hub.Await(w.World, inst, "its turn comes", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Rendering != nil && i.Status.Rendering.Attempts == 2
	})
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "bomb")
}
