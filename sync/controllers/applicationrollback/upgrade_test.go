package applicationrollback_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// migration is a hook that goes on until a test ends it: no node runs its Pod.
const migration = `{{ if eq .Values.mode "` + after + `" }}
apiVersion: batch/v1
kind: Job
metadata:
  name: migration
  annotations: {helm.sh/hook: post-upgrade}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {nowhere: "true"}
      containers: [{name: migrate, image: migrate}]
{{ end }}`

// guarded installs the application by a chart that migrates its data after an upgrade, and has upgrades that fail
// go back with the data.
func (w *world) guarded() *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	set := w.database(volumes.ImmediateClass)
	set.APIVersion, set.Kind = "apps/v1", "StatefulSet"
	manifest, err := yaml.Marshal(set)
	require.NoError(w.T, err)
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(w.T, err)
	_, err = repo.Push("../../../examples/charts/web", func(c *chart.Chart) {
		c.Metadata.Name, c.Metadata.Version, c.Schema, c.Values = "db", "1.0.0", nil, map[string]any{"mode": ""}
		settings := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {app: db}}\ndata: {mode: {{ .Values.mode }}}\n---\n"
		c.Templates = []*chart.File{{Name: "templates/all.yaml", Data: append([]byte(settings), manifest...)}, {Name: "templates/hook.yaml", Data: []byte(migration)}}
	})
	require.NoError(w.T, err)
	definition := &v1alpha1.ApplicationDefinition{Spec: v1alpha1.ApplicationDefinitionSpec{
		Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: &v1alpha1.ApplicationTemplate{
			Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: repo.URL(), ChartName: "db", ChartVersion: "1.0.0"}},
		}}},
	}}
	definition.Name = w.Namespace
	w.Create(definition)
	inst := &v1alpha1.ApplicationInstallation{Spec: v1alpha1.ApplicationInstallationSpec{
		ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}, Values: mode(before),
		DeployOptions: &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{Wait: true, Atomic: true}},
		BeforeUpgrade: &v1alpha1.BeforeUpgrade{Snapshot: v1alpha1.SnapshotRequire, ApplicationSnapshotClassName: class},
	}}
	inst.Name = "db"
	w.Create(inst)
	data := &v1alpha1.StatefulApplication{Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: "db"}}
	data.Name = "db"
	w.Create(data)
	return hub.AwaitReady(w.World, inst)
}

// C22, C65: an upgrade whose hook fails after it has changed the data goes back, release and data together, and is not
// tried again; what is wanted next is installed with the data of before.
func TestRollback_ofAnUpgradeThatFails(t *testing.T) {
	w := newWorld(t)
	w.deliverers()
	inst := w.guarded()
	w.sh("printf " + before + " >data/file")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.Values = mode(after) })
	job := &batchv1.Job{}
	w.AwaitThere(job, "migration")
	w.sh("printf " + after + " >data/file")
	w.requireState(after)
	hub.Change(w.World, job, func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](1) })

	inst = hub.Await(w.World, inst, "it has gone back", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.UpgradeRollback != nil && i.Status.UpgradeRollback.Ended() && conditions.IsStalled(i)
	})
	assert.Equal(t, v1alpha1.UpgradeRollbackCompleted, inst.Status.UpgradeRollback.Phase, conditions.GetMessage(inst, v1alpha1.ReadyCondition))
	assert.Equal(t, v1alpha1.UpgradeFailedReason, conditions.GetReason(inst, v1alpha1.ReadyCondition))
	w.requireState(before)
	lines := w.history()
	require.Len(t, lines, 3)
	assert.ElementsMatch(t, []string{"Install complete", "Rollback to 1"}, []string{lines[0], lines[2]})

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.Values = mode("third") })
	w.awaitRevision(inst, 4)
	w.requireSettings("third")
	assert.Equal(t, before, w.sh("cat data/file"))
}
