package applicationrollback_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/applicationinstallation"
	"waybill.dev/waybill/sync/controllers/gitsync"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// deliverers runs what delivers applications beside what rolls them back.
func (w *world) deliverers() {
	w.T.Helper()
	p := hub.Start(w.T, w.Cluster, func(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
		syncs := &gitsync.Reconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("waybill-sync"), Clusters: s.Clusters, Secrets: s.Secrets,
			HubID: s.HubID, Git: s.Git, SystemNamespace: hub.SystemNamespace,
		}
		if err := syncs.SetupWithManager(ctx, mgr); err != nil {
			return err
		}
		err := (&applicationinstallation.Reconciler{
			Hub: mgr.GetClient(), Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID, Git: s.Git, Charts: s.Charts, SystemNamespace: hub.SystemNamespace,
		}).SetupWithManager(ctx, mgr)
		s.Clusters.Ensure(types.NamespacedName{Namespace: hub.SystemNamespace, Name: "local"}, "local", nil)
		return err
	})
	w.T.Cleanup(p.Stop)
}

// slow has each volume be made after two seconds, so that there is a middle of a rollback.
func (w *world) slow() (end func()) {
	return w.Driver.Inject(csidriver.Fault{Method: "CreateVolume", Namespace: w.Namespace, Delay: 2 * time.Second})
}

// C65: a commit that arrives in the middle of a rollback is applied when it has ended, at once: no user looks at the
// repository again, or at the rollback.
func TestRollback_commitInTheMiddle(t *testing.T) {
	w := newWorld(t)
	w.deliverers()
	w.install(volumes.ImmediateClass)
	require.NoError(t, w.Client.Delete(t.Context(), w.settings()))
	_, repo := hub.NewRepo(t)
	w.CreateGitAuthority()
	commit := func(mode string) {
		t.Helper()
		_, err := repo.Commit(t.Context(), map[string]string{"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  labels: {app: db}\ndata: {mode: " + mode + "}\n"})
		require.NoError(t, err)
	}
	commit(before)
	sync := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: v1alpha1.GitSyncSpec{
		URL: repo.URL(), Interval: metav1.Duration{Duration: time.Hour}, SecretRef: &v1alpha1.LocalReference{Name: "git"},
	}}
	w.Create(sync)
	hub.AwaitReady(w.World, sync)
	w.sh("printf " + before + " >data/file")
	w.snapshot("one")
	commit(after)
	hub.Reconcile(w.World, sync)
	w.sh("printf " + after + " >data/file")

	defer w.slow()()
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackRestoring)
	commit("third")
	hub.Reconcile(w.World, sync)
	mode := func() string {
		settings := w.settings()
		require.True(t, w.Exists(settings, settings.Name))
		return settings.Data["mode"]
	}
	assert.NotEqual(t, "third", mode(), "the rollback is not disturbed")
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	assert.True(t, w.Eventually(func() bool { return mode() == "third" }), "it is applied now")
	assert.Equal(t, before, w.sh("cat data/file"))
	hub.Await(w.World, sync, "nothing is held of it", func(s *v1alpha1.GitSync) bool {
		return conditions.IsReady(s) && !conditions.Has(s, v1alpha1.HeldCondition)
	})
}

// release installs the application by a chart whose value is the mode.
func (w *world) release() *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	w.publish()
	inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1alpha1.ApplicationInstallationSpec{
		ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}, Values: mode(before),
	}}
	w.Create(inst)
	w.Create(&v1alpha1.StatefulApplication{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: "db"}})
	return hub.AwaitReady(w.World, inst)
}

// publish offers the application as a chart whose value is the mode, with more templates.
func (w *world) publish(more ...*chart.File) {
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
		c.Templates = append([]*chart.File{{Name: "templates/all.yaml", Data: append([]byte(settings), manifest...)}}, more...)
	})
	require.NoError(w.T, err)
	w.Create(&v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: v1alpha1.ApplicationDefinitionSpec{
		Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: &v1alpha1.ApplicationTemplate{
			Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: repo.URL(), ChartName: "db", ChartVersion: "1.0.0"}},
		}}},
	}})
}

func mode(value string) *apiextensionsv1.JSON {
	raw, _ := json.Marshal(map[string]string{"mode": value}) // of strings it cannot fail
	return &apiextensionsv1.JSON{Raw: raw}
}

// upgrade changes the value, and waits until the release has a revision.
func (w *world) upgrade(inst *v1alpha1.ApplicationInstallation, to string, revision int) {
	w.T.Helper()
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.Values = mode(to) })
	w.awaitRevision(inst, revision)
}

func (w *world) awaitRevision(inst *v1alpha1.ApplicationInstallation, revision int) {
	w.T.Helper()
	hub.Await(w.World, inst, "not at its revision", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release != nil && int(i.Status.Release.Revision) == revision && conditions.IsReady(i)
	})
}

// history is what `helm history` shows.
func (w *world) history() []string {
	w.T.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = ptr.To(w.Cluster.KubeconfigFile()), &w.Namespace
	helm := &action.Configuration{}
	require.NoError(w.T, helm.Init(flags, w.Namespace, "secret", func(string, ...any) {}))
	found, err := action.NewHistory(helm).Run("db")
	require.NoError(w.T, err)
	var lines []string
	for _, r := range found {
		lines = append(lines, r.Info.Description)
	}
	return lines
}

// C65: the release of an application that is rolled back goes back to its revision, as Helm's history shows; and what
// is wanted in the middle of a rollback is installed when that has ended.
func TestRollback_releaseOfHelm(t *testing.T) {
	w := newWorld(t)
	w.deliverers()
	inst := w.release()
	w.sh("printf " + before + " >data/file")
	w.snapshot("one")
	w.upgrade(inst, after, 2)
	w.sh("printf " + after + " >data/file")

	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.awaitRevision(inst, 3)
	w.requireState(before)
	assert.ElementsMatch(t, []string{"Install complete", "Upgrade complete", "Rollback to 1"}, w.history())

	defer w.slow()()
	again := w.rollback("again", "one")
	w.Create(again)
	w.awaitPhase(again, v1alpha1.RollbackRestoring)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.Values = mode("third") })
	w.awaitPhase(again, v1alpha1.RollbackCompleted)
	w.awaitRevision(inst, 4)
	w.requireSettings("third")
	assert.Equal(t, before, w.sh("cat data/file"), "the data is that of the snapshot")
	assert.ElementsMatch(t, []string{"Install complete", "Upgrade complete", "Rollback to 1", "Upgrade complete"}, w.history())
}

// C65: what a chart has installed from another namespace is not put back before the rollback has ended, nor after that,
// until something else is wanted.
func TestRollback_releaseFromAnotherNamespace(t *testing.T) {
	w := newWorld(t)
	w.deliverers()
	w.publish()
	team := w.Cluster.Namespace(t)
	inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "db"}, Spec: v1alpha1.ApplicationInstallationSpec{
		ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}, Values: mode(before),
		Namespace: &v1alpha1.TargetNamespace{Name: w.Namespace},
	}}
	require.NoError(t, w.Client.Create(t.Context(), inst))
	w.Create(&v1alpha1.StatefulApplication{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: "db"}})
	hub.AwaitReady(w.World, inst)
	w.sh("printf " + before + " >data/file")
	w.snapshot("one")
	w.upgrade(inst, after, 2)
	w.sh("printf " + after + " >data/file")

	defer w.slow()()
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackRestoring)
	hub.Reconcile(w.World, inst)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	hub.Reconcile(w.World, inst)
	w.requireState(before)
	assert.ElementsMatch(t, []string{"Install complete", "Upgrade complete"}, w.history(), "the rollback does not decide about the release")

	w.upgrade(inst, "third", 3)
	w.requireSettings("third")
	assert.Equal(t, before, w.sh("cat data/file"))
}

func (w *world) requireSettings(want string) {
	w.T.Helper()
	settings := w.settings()
	require.True(w.T, w.Exists(settings, settings.Name))
	require.Equal(w.T, want, settings.Data["mode"])
}
