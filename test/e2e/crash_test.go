package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
	"waybill.dev/waybill/test/program"
)

func TestMain(m *testing.M) { hub.Main(m) }

const crds = "../../charts/waybill/crds"

// kills is how often waybill-sync is killed, and installations how much it is in the middle of.
const (
	kills         = 6
	installations = 8
)

// setting is a cluster that is hub and user cluster in one, with what waybill-sync is to do.
// The tests create the KubernetesCluster that leads to it.
type setting struct {
	*hub.World
	bin, cache string
	repo       *env.GitRepo
}

func newSetting(t *testing.T, o env.Options) *setting {
	t.Helper()
	o.CRDs = []string{crds}
	s := &setting{World: hub.NewWorld(t, env.Start(t, o)), cache: t.TempDir()}
	var err error
	s.bin, err = program.Build(t.Context(), program.Sync)
	require.NoError(t, err)
	s.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hub.SystemNamespace}})
	s.CreateGitAuthority()
	_, s.repo = hub.NewRepo(t)
	charts, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(charts.Stop)
	_, err = charts.Push("../../examples/charts/web")
	require.NoError(t, err)
	s.Create(&v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: v1alpha1.ApplicationDefinitionSpec{Versions: []v1alpha1.ApplicationVersion{{
			Version: "1.1.0",
			Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{
				URL: charts.URL(), ChartName: "web", ChartVersion: "1.1.0",
			}}},
		}}},
	})
	return s
}

// lead creates the KubernetesCluster, with the reference to its kubeconfig, if it has one.
func (s *setting) lead(kubeconfig *v1alpha1.SecretKeyReference) {
	s.T.Helper()
	s.Create(&v1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "here", Namespace: hub.SystemNamespace},
		Spec:       v1alpha1.KubernetesClusterSpec{KubeconfigSecretRef: kubeconfig},
	})
}

func (s *setting) start(args ...string) *env.Process {
	s.T.Helper()
	process, err := program.Start(s.T.Context(), program.Options{
		Name: program.Sync, As: "waybill-sync", Bin: s.bin, Kubeconfig: s.Cluster.KubeconfigFile(), Args: append(args, "--cache-dir="+s.cache),
	})
	require.NoError(s.T, err)
	s.T.Cleanup(func() {
		s.tell(process)
		assert.NoError(s.T, process.Kill())
	})
	return process
}

// tell shows, where the test failed, what the process said last and how the objects are.
func (s *setting) tell(process *env.Process) {
	if !s.T.Failed() {
		return
	}
	log, _ := process.Log()
	s.T.Log(program.Tail(log, 40))
	state, _ := s.Cluster.Kubectl(context.Background(), "", "get", "waybill", "-A", "-o", "yaml")
	s.T.Log(state)
	objects, _ := s.Cluster.Kubectl(context.Background(), "", "-n", s.Namespace, "get", "deployments,jobs,pods,secrets,applications.apps.waybill.dev")
	s.T.Log(objects)
}

// manifest is an installation of the chart `web` as a file of the repository.
func (s *setting) manifest(name string) string {
	return fmt.Sprintf(`
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: %s}
spec:
  applicationRef: {name: web, version: 1.1.0}
`, name)
}

// A kill at any point loses nothing and leaves nothing behind (P9, C41, K3).
func TestSync_survivesBeingKilledAtAnyPoint(t *testing.T) {
	s := newSetting(t, env.Options{Name: "crash", Pods: true})
	s.lead(nil)
	files := map[string]string{}
	for i := range installations {
		files[fmt.Sprintf("web-%d.yaml", i)] = s.manifest(fmt.Sprintf("web-%d", i))
	}
	_, err := s.repo.Commit(t.Context(), files)
	require.NoError(t, err)
	gs := &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Name: "apps"},
		Spec: v1alpha1.GitSyncSpec{
			URL: s.repo.URL(), Interval: metav1.Duration{Duration: time.Second}, SecretRef: &v1alpha1.LocalReference{Name: "git"},
		},
	}
	s.Create(gs)
	s.killWhile(func(seen int) bool { return s.countReleases() > seen })
	last := s.start()
	hub.AwaitReady(s.World, gs)
	for i := range installations {
		inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: fmt.Sprintf("web-%d", i)}}
		hub.AwaitReady(s.World, inst)
		assert.Equal(t, "deployed", inst.Status.Release.Status)
		assert.True(t, conditions.IsTrue(inst, v1alpha1.InstalledCondition))
	}

	last = s.killWhileRendering(last)
	require.NoError(t, s.Client.Delete(t.Context(), gs))
	require.True(t, s.Eventually(func() bool { return s.countInstallations() < installations }))
	require.NoError(t, last.Kill())
	s.start()
	s.AwaitGone(&v1alpha1.GitSync{}, "apps")
	require.True(t, s.Eventually(func() bool { return s.countInstallations() == 0 }))
	assert.Zero(t, s.countReleases(), "no record of a release is left")
	assert.Zero(t, s.count(&corev1.ConfigMapList{}, client.HasLabels{v1alpha1.OwnerHashLabel}), "nor any object")
}

// killWhileRendering kills waybill-sync while a chart is rendered, and returns the next one: what was being
// rendered waits its turn, and says so, and what others install goes first (P12).
func (s *setting) killWhileRendering(process *env.Process) *env.Process {
	s.T.Helper()
	charts, err := env.StartHelmRepo(env.Access{})
	require.NoError(s.T, err)
	s.T.Cleanup(charts.Stop)
	_, err = charts.Push("../../examples/charts/web", template("endless", `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`))
	require.NoError(s.T, err)
	s.offer("endless", charts.URL(), "")
	endless := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "endless"}}
	hub.Await(s.World, endless, "it is being rendered", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Rendering != nil })
	require.NoError(s.T, process.Kill())

	later := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: "later"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.1.0"}},
	}
	s.Create(later)
	process = s.start()
	message := hub.AwaitReason(s.World, endless, v1alpha1.RenderingInterruptedReason)
	assert.Contains(s.T, message, "chart endless-1.1.0 was interrupted; others go first")
	hub.AwaitReady(s.World, later)
	hub.Await(s.World, endless, "its turn comes", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Rendering != nil && i.Status.Rendering.Attempts == 2
	})
	for _, inst := range []*v1alpha1.ApplicationInstallation{endless, later} {
		require.NoError(s.T, s.Client.Delete(s.T.Context(), inst))
		s.AwaitGone(&v1alpha1.ApplicationInstallation{}, inst.Name)
	}
	return process
}

// killWhile starts and kills waybill-sync again and again, each time as soon as it has made
// progress: in the middle of what comes next.
func (s *setting) killWhile(progressed func(seen int) bool) {
	s.T.Helper()
	for range kills {
		seen := s.countReleases()
		process := s.start()
		s.within(10*time.Second, func() bool { return progressed(seen) })
		require.NoError(s.T, process.Kill())
	}
}

// within asks until it is told yes, or the time is over: where there is nothing left to make
// progress with, the kill is one in peace.
func (s *setting) within(d time.Duration, ask func() bool) {
	ctx, cancel := context.WithTimeout(s.T.Context(), d)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !ask() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *setting) countReleases() int {
	return s.count(&corev1.SecretList{}, client.MatchingLabels{"owner": "helm"})
}

func (s *setting) countInstallations() int {
	return s.count(&v1alpha1.ApplicationInstallationList{})
}

func (s *setting) count(list client.ObjectList, opts ...client.ListOption) int {
	s.T.Helper()
	require.NoError(s.T, s.Client.List(s.T.Context(), list, append(opts, client.InNamespace(s.Namespace))...))
	return meta.LenList(list)
}
