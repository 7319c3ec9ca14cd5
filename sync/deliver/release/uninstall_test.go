package release_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/deliver/release"
)

// K47, K53, C34
func TestUninstall_takesEverythingAway(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	w.ensure(w.desired("web", values{"replicas": 2}))
	left, err := w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, nil)
	require.NoError(t, err)
	assert.Len(t, left.Objects, 4)
	assert.Empty(t, left.Kept)
	assert.Empty(t, w.revisions("web"))
	_, err = w.configMap("web")
	assert.True(t, apierrors.IsNotFound(err))
}

func TestUninstall_ofNothingIsDone(t *testing.T) {
	w := newWorld(t)
	left, err := w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, nil)
	require.NoError(t, err)
	assert.Empty(t, left.Objects)
}

// What asks to be kept stays, and so does what belongs to another release by now.
func TestUninstall_leavesWhatIsNotItsToDelete(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"extra": true, "keep": true}))
	patch := []byte(`{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`)
	_, err := w.client.CoreV1().Services(w.namespace).Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	left, err := w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, nil)
	require.NoError(t, err)
	why := map[string]string{}
	for _, k := range left.Kept {
		why[k.ID.Kind+" "+k.ID.Name] = k.Why
	}
	assert.Equal(t, map[string]string{
		"ConfigMap web-extra": "it has the annotation helm.sh/resource-policy: keep",
		"Service web":         "it belongs to the release " + w.namespace + "/other now",
	}, why)
	_, err = w.configMap("web-extra")
	require.NoError(t, err)
	_, err = w.client.CoreV1().Services(w.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
}

// C34: what cannot be deleted is named, the record stays, and the next try goes on.
func TestUninstall_namesWhatItCannotDelete(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	reviveDeletes := w.refuse(deletes)
	_, err := w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, nil)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "delete ConfigMap "+w.namespace+"/web")
	assert.Equal(t, []string{"1 uninstalling"}, w.revisions("web"))

	reviveDeletes()
	_, err = w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, nil)
	require.NoError(t, err)
	assert.Empty(t, w.revisions("web"))
}

// What a failed upgrade dropped from the manifest, and did not delete any more, goes too.
func TestUninstall_looksBehindAFailedUpgrade(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"extra": true}))
	_, err := w.try(t.Context(), w.desired("web", values{"broken": true}))
	require.Error(t, err)
	_, err = w.configMap("web-extra")
	require.NoError(t, err)
	_, err = w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, nil)
	require.NoError(t, err)
	_, err = w.configMap("web-extra")
	assert.True(t, apierrors.IsNotFound(err))
}

// An uninstall that was broken off is ended before the release is installed again.
func TestEnsure_endsABrokenOffUninstall(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	reviveDeletes := w.refuse(deletes)
	_, err := w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, nil)
	require.Error(t, err)
	reviveDeletes()
	result := w.ensure(w.desired("web", nil))
	assert.Equal(t, release.ActionInstall, result.Action)
	assert.Equal(t, []string{"1 deployed"}, w.revisions("web"))
}
