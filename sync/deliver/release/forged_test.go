package release_test

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/test/bomb"
)

// forge makes a Secret with the labels of the record of a revision, which holds what is given.
func (w *world) forge(of, name, revision, record string) {
	w.Helper()
	w.forgePacked(of, name, revision, bomb.Gzip(w, bomb.Part{Text: record, Times: 1}))
}

func (w *world) forgePacked(of, name, revision string, record []byte) {
	w.Helper()
	secrets := w.client.CoreV1().Secrets(w.namespace)
	real, err := secrets.Get(w.Context(), "sh.helm.release.v1."+of+".v1", metav1.GetOptions{})
	require.NoError(w, err)
	packed := base64.StdEncoding.EncodeToString(record)
	labels := real.Labels
	labels["version"], labels["status"] = revision, "deployed"
	labels["apps.waybill.dev/input"] = strings.Replace(labels["apps.waybill.dev/input"], "1.", revision+".", 1)
	_, err = secrets.Create(w.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Type: real.Type, Data: map[string][]byte{"release": []byte(packed)},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
}

// inflated is a record that is gigabytes once it is decoded.
func inflated(t *testing.T, name, revision string) []byte {
	t.Helper()
	head := fmt.Sprintf(`{"name":%q,"version":%s,"info":{"status":"deployed"},"hooks":[`, name, revision)
	return bomb.Gzip(t, bomb.Part{Text: head, Times: 1}, bomb.Part{Text: "{},", Times: 40 << 20}, bomb.Part{Text: "{}]}", Times: 1})
}

// K53: Secrets that pass for records of revisions which cannot be are ignored, and named; the next revision does not count
// on from them.
func TestEnsure_ignoresRevisionsThatCannotBe(t *testing.T) {
	w := newWorld(t)
	d := w.desired("web", nil)
	w.ensure(d)
	var forged []string
	for _, revision := range []string{"999", "2147483647", "9223372036854775807"} {
		name := "sh.helm.release.v1.web.v" + revision
		w.forge("web", name, revision, "{}")
		forged = append(forged, name)
	}
	w.forge("web", "another-name", "2", "{}")
	forged = append(forged, "another-name")

	result := w.ensure(d)
	assert.Equal(t, release.ActionNone, result.Action)
	assert.Empty(t, result.Altered)
	assert.ElementsMatch(t, forged, result.Ignored)
	_, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
	require.NoError(t, err)

	result = w.ensure(w.desired("web", values{"replicas": 2}))
	assert.EqualValues(t, 2, result.Release.Revision)
	for _, name := range forged {
		require.NoError(t, w.client.CoreV1().Secrets(w.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	assert.Empty(t, w.ensure(w.desired("web", values{"replicas": 2})).Ignored)
}

// K53: a record that was not noted is not decoded if it becomes too large, whatever is to be done about the release.
func TestEnsure_decodesNoBomb(t *testing.T) {
	w := newWorld(t)
	d := w.desired("web", nil)
	w.ensure(d)
	w.forgePacked("web", "sh.helm.release.v1.web.v2", "2", inflated(t, "web", "2"))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	_, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
	assert.Equal(t, release.ReasonAltered, release.ReasonOf(err))
	result := w.ensure(d)
	assert.Equal(t, release.ActionUpgrade, result.Action)
	assert.EqualValues(t, 3, result.Release.Revision)
	assert.Equal(t, []int{2}, result.Altered)
	assert.Contains(t, strings.Join(result.Warnings, "\n"), "skipped the objects of revision 2, whose record cannot be read")

	w.forgePacked("web", "sh.helm.release.v1.web.v4", "4", inflated(t, "web", "4"))
	back, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, release.Verdict{Why: "not healthy"})
	require.NoError(t, err)
	assert.EqualValues(t, 5, back.Release.Revision, "the first, once more")
	assert.Equal(t, []int{4}, back.Altered)
	_, err = w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, result.Objects)
	require.NoError(t, err)
	assert.Empty(t, w.revisions("web"))
	runtime.ReadMemStats(&after)
	assert.Less(t, after.Sys-before.Sys, uint64(300<<20))
}
