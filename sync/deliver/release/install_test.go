package release_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
)

// K47, K48, C53: a real release, with our marks, and few requests.
func TestEnsure_installs(t *testing.T) {
	w := newWorld(t)
	d := w.desired("web", values{"greeting": "{{ .Release.Name }}"})
	var result release.Result
	requests := w.calls(func() { result = w.ensure(d) })
	assert.LessOrEqual(t, len(requests), 13, "requests for an install of four objects")

	assert.Equal(t, release.ActionInstall, result.Action)
	digest, err := d.Digest()
	require.NoError(t, err)
	assert.Len(t, result.Release.RecordDigest, 64)
	assert.Len(t, result.Release.StoredDigest, 64)
	assert.NotEmpty(t, result.Release.StoredVersion)
	assert.Equal(t, v1alpha1.ReleaseStatus{
		Name: "web", Namespace: w.namespace, Revision: 1, Chart: "web-1.0.0", Digest: digest, Status: "deployed",
		RecordDigest: result.Release.RecordDigest, StoredDigest: result.Release.StoredDigest, StoredVersion: result.Release.StoredVersion,
	}, result.Release)
	assert.ElementsMatch(t, []manifest.ID{
		{Version: "v1", Kind: "ServiceAccount", Namespace: w.namespace, Name: "web"},
		{Version: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: "web"},
		{Version: "v1", Kind: "Service", Namespace: w.namespace, Name: "web"},
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: w.namespace, Name: "web"},
	}, result.Objects)

	config, err := w.configMap("web")
	require.NoError(t, err)
	assert.Equal(t, "{{ .Release.Name }}", config.Data["greeting"], "values are data (C33)")
	assert.Equal(t, "hash-of-web", config.Labels[v1alpha1.OwnerHashLabel])
	assert.Equal(t, "web", config.Labels[v1alpha1.ReleaseLabel])
	assert.Equal(t, "hub/ApplicationInstallation/default/web", config.Annotations[v1alpha1.OwnerAnnotation])
	require.Len(t, config.ManagedFields, 1)
	assert.Equal(t, v1alpha1.HelmFieldManager, config.ManagedFields[0].Manager)
	deployment, err := w.client.AppsV1().Deployments(w.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"app": "web"}, deployment.Spec.Selector.MatchLabels)
	assert.Equal(t, map[string]string{"app": "web"}, deployment.Spec.Template.Labels)
}

// K47: a user who runs Helm by hand sees the release, and can work with it.
func TestEnsure_makesReleasesThatHelmSees(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"replicas": 2}))
	list, err := action.NewList(w.helm()).Run()
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "web", list[0].Name)
	assert.Equal(t, "1.0.0", list[0].Chart.Metadata.Version)
	assert.EqualValues(t, "deployed", list[0].Info.Status)
	assert.EqualValues(t, 2, list[0].Config["replicas"])
	_, err = action.NewUninstall(w.helm()).Run("web")
	require.NoError(t, err)
	assert.Equal(t, release.ActionInstall, w.ensure(w.desired("web", nil)).Action)
}

// C54: what did not change is not upgraded, and recognised with next to no requests, by a new process too.
func TestEnsure_leavesWhatIsAsWanted(t *testing.T) {
	w := newWorld(t)
	first := w.ensure(w.desired("web", values{"replicas": 2}))
	w.engine = release.NewEngine().RenderedBy(builder)
	var second release.Result
	requests := w.calls(func() { second = w.ensure(w.desired("web", values{"replicas": 2})) })
	assert.Len(t, requests, 2, "the history, the release")
	assert.Equal(t, release.ActionNone, second.Action)
	assert.Equal(t, first.Release, second.Release)
	assert.Equal(t, first.Objects, second.Objects)
	assert.Equal(t, []string{"1 deployed"}, w.revisions("web"))
}

// K54: a chart with a chart inside
func TestEnsure_installsDependencies(t *testing.T) {
	w := newWorld(t)
	assert.Len(t, w.ensure(w.desired("parent", nil)).Objects, 2)
	assert.Len(t, w.ensure(w.desired("parent", values{"child": values{"enabled": false}})).Objects, 1)
	_, err := w.configMap("parent-child")
	assert.True(t, apierrors.IsNotFound(err))
}

// A release of that name that another owner made is not taken over, nor are objects (C13, C55).
func TestEnsure_leavesForeignReleasesAlone(t *testing.T) {
	w := newWorld(t)
	d := w.desired("web", nil)
	w.ensure(d)
	d.OwnerHash, d.Owner = "another", "hub/ApplicationInstallation/other/web"
	_, err := w.try(t.Context(), d)
	assert.Equal(t, release.ReasonConflict, release.ReasonOf(err))
	left, err := w.engine.Uninstall(t.Context(), w.target, d.Identity, release.Options{}, nil)
	require.NoError(t, err)
	assert.Empty(t, left.Objects)
	assert.Equal(t, []string{"1 deployed"}, w.revisions("web"))
}

func TestEnsure_leavesForeignObjectsAlone(t *testing.T) {
	w := newWorld(t)
	_, err := w.client.CoreV1().Services(w.namespace).Create(t.Context(), service("web"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.try(t.Context(), w.desired("web", nil))
	assert.Equal(t, release.ReasonConflict, release.ReasonOf(err))
	assert.Contains(t, err.Error(), `Service "web"`)
	assert.False(t, release.IsTerminal(err))
	_, err = w.configMap("web")
	assert.True(t, apierrors.IsNotFound(err), "nothing was made")
	assert.Empty(t, w.revisions("web"))
}

// K47: what is wrong with the input is said, and is not worth another try.
func TestEnsure_saysWhatIsWrongWithTheInput(t *testing.T) {
	w := newWorld(t)
	broken := w.template(`{{ fail "needs a name" }}`)
	longName := w.desired("web", nil)
	longName.Name = "a-name-that-has-more-characters-than-helm-has-ever-allowed"
	unknown := w.template("apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: x}\n")
	cases := map[string]struct {
		desired  release.Desired
		reason   release.Reason
		terminal bool
		want     string
	}{
		"Values":        {w.desired("web", values{"replicas": "two"}), release.ReasonValues, true, "replicas: got string, want integer"},
		"Render":        {broken, release.ReasonRender, true, "needs a name"},
		"Name":          {longName, release.ReasonRender, true, "release name"},
		"InvalidObject": {w.desired("web", values{"broken": true}), release.ReasonInvalidObject, true, "create Service " + w.namespace + "/web-broken"},
		"UnknownKind":   {unknown, release.ReasonUnknownKind, false, "Nothing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := w.try(t.Context(), tc.desired)
			require.Error(t, err)
			assert.Equal(t, tc.reason, release.ReasonOf(err), err.Error())
			assert.Equal(t, tc.terminal, release.IsTerminal(err))
			assert.Contains(t, err.Error(), tc.want)
		})
	}
}

// A failed install is taken up again as an install, and what it left that is not wanted any more goes.
func TestEnsure_takesAFailedInstallUpAgain(t *testing.T) {
	w := newWorld(t)
	failed, err := w.try(t.Context(), w.desired("web", values{"broken": true, "extra": true}))
	require.Error(t, err)
	assert.Equal(t, "failed", failed.Release.Status)
	_, err = w.configMap("web-extra")
	require.NoError(t, err)

	result := w.ensure(w.desired("web", nil))
	assert.Equal(t, release.ActionInstall, result.Action)
	assert.Equal(t, []string{"1 failed", "2 deployed"}, w.revisions("web"))
	_, err = w.configMap("web-extra")
	assert.True(t, apierrors.IsNotFound(err))
}

func TestEnsure_atomicUninstallsAFailedInstall(t *testing.T) {
	w := newWorld(t)
	d := w.desired("web", values{"broken": true})
	d.Options.Atomic = true
	result, err := w.try(t.Context(), d)
	require.Error(t, err)
	assert.Equal(t, release.ReasonInvalidObject, release.ReasonOf(err))
	assert.Contains(t, err.Error(), "and was uninstalled")
	assert.True(t, result.Gone, "who noted the release forgets it")
	assert.Empty(t, w.revisions("web"))
	_, err = w.configMap("web")
	assert.True(t, apierrors.IsNotFound(err))
}

// The end of the context ends the action, and the record says so.
func TestEnsure_endsWithItsContext(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.try(ctx, w.desired("web", nil))
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, w.revisions("web"))
}
