package applicationinstallation_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// checked is a chart with a hook that does not end before the test has it go on.
const checked = `
apiVersion: batch/v1
kind: Job
metadata: {name: check, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: check, image: registry.example.com/check:1}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {text: {{ .Values.text | default "one" | quote }}}
`

// K46, C43: while a first install, or an upgrade, waits for a hook, Ready is there and says so.
func TestInstallation_saysWhichHookItWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.repo.Push(charts+"web", func(c *chart.Chart) {
		c.Metadata.Version, c.Schema = "0.9.0-checked", nil
		c.Templates = []*chart.File{{Name: "templates/all.yaml", Data: []byte(checked)}}
	})
	require.NoError(t, err)
	w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
		d.Versions[0].Template.Source = w.webSource("0.9.0-checked")
	})
	says := func(inst *v1alpha1.ApplicationInstallation, part string) {
		t.Helper()
		hub.Await(w.World, inst, "Ready does not say "+part, func(i *v1alpha1.ApplicationInstallation) bool {
			return conditions.IsUnknown(i, v1alpha1.ReadyCondition) && conditions.GetReason(i, v1alpha1.ReadyCondition) == v1alpha1.ProgressingReason &&
				strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), part)
		})
	}
	resume := func(job *batchv1.Job) {
		t.Helper()
		hub.Change(w.World, job, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(false) })
	}
	const hook = ": waiting for hook Job.batch "
	job := &batchv1.Job{}
	inst := w.install(nil)
	w.AwaitThere(job, "check")
	says(inst, "installing "+w.Namespace+" 1.0.0")
	says(inst, "installing "+w.Namespace+" 1.0.0"+hook+w.Namespace+"/check to end")
	resume(job)
	hub.AwaitReady(w.World, inst)

	first := job.UID
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.Values = values(t, map[string]any{"text": "two"}) })
	require.True(t, w.Eventually(func() bool { return w.Exists(job, "check") && job.UID != first }), "the hook does not run again")
	says(inst, hook+w.Namespace+"/check to end")
	resume(job)
	hub.AwaitReady(w.World, inst)
}
