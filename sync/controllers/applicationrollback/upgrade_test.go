package applicationrollback_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
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
	w.publish(&chart.File{Name: "templates/hook.yaml", Data: []byte(migration)})
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
