package applicationinstallation_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// withValues changes the values of an installation, and waits until it is Ready with them.
func (w *world) withValues(inst *v1alpha1.ApplicationInstallation, replicas int, title string) []string {
	w.T.Helper()
	return w.requestsOf(func() {
		hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
			i.Spec.Values = values(w.T, map[string]any{"replicas": replicas, "page": map[string]any{"title": title}})
		})
		hub.AwaitReady(w.World, inst)
	})
}

// K47: an upgrade sends one request for an object that changes, and none for the others: what they are is
// known from watches.
func TestInstallation_upgradeReadsNothingThatIsKnown(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	for _, title := range []string{"one", "two"} {
		made := w.withValues(inst, 2, title)
		toPage := slices.DeleteFunc(made, func(r string) bool { return !strings.HasSuffix(r, "configmaps  web") })
		assert.Equal(t, []string{"patch configmaps  web"}, toPage)
	}
	assert.Contains(t, w.page("web"), "two")
}

// K42, C41: that another version is being installed is written with the intent, before anything is: progress that
// says no more than that needs no write of its own.
func TestInstallation_announcesAnUpgradeWithItsIntent(t *testing.T) {
	w := newWorld(t)
	w.versioned()
	inst := hub.AwaitReady(w.World, w.install(nil))
	held := w.admission("v1.1.0")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	env.Receive(t, held.asked, "nothing is upgraded")
	require.NoError(t, w.get(inst))
	assert.Equal(t, "1.1.0", inst.Status.Application.Version)
	ready := conditions.Get(inst, v1alpha1.ReadyCondition)
	assert.Equal(t, metav1.ConditionUnknown, ready.Status)
	assert.Equal(t, "installing "+w.Namespace+" 1.1.0", ready.Message)
	assert.True(t, conditions.IsReconciling(inst))
	assert.NotEqual(t, inst.Generation, inst.Status.ObservedGeneration, "it is not done")
	held.release()
	w.awaitVersion(inst, "1.1.0")
}

// long is how long an install takes before its progress is shown, which is a write.
const long = 5 * time.Second

// C41: an upgrade of which nothing is left to wait for writes the status twice: what is about to be installed, and what
// has become of that.
func TestInstallation_upgradeWritesItsStatusTwice(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		files[version+"/web.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {version: " + version + "}\n"
	}
	w.kustomizations(files)
	inst := hub.AwaitReady(w.World, w.install(nil))
	for _, version := range []string{"1.1.0", "1.0.0"} {
		began := time.Now()
		made := w.requestsOf(func() {
			w.move(inst, version)
			w.awaitVersion(inst, version)
		})
		if time.Since(began) >= long {
			t.Skip("it took so long that its progress was shown, too")
		}
		writes := slices.DeleteFunc(made, func(r string) bool { return r != "patch applicationinstallations status web" })
		assert.Len(t, writes, 2, "%s: %v", version, made)
	}
}

// K3: what was edited is corrected by an upgrade, also where that is not done otherwise.
func TestInstallation_upgradePutsRightWhatWasEdited(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{DriftDetection: v1alpha1.DriftDisabled}}
	}))
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	config := &corev1.ConfigMap{}
	require.True(t, w.Exists(config, "web"))
	hub.Change(w.World, config, func(c *corev1.ConfigMap) { c.Data["added"] = "kept" })
	w.withValues(inst, 2, "one")
	assert.EqualValues(t, 2, *w.deployment("web").Spec.Replicas, "although the values of it did not change")
	require.True(t, w.Exists(config, "web"))
	assert.Equal(t, "kept", config.Data["added"])
	assert.Contains(t, w.page("web"), "one")
}
