package release_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/deliver/release"
)

// replaced returns a target that, when the hook of an action was made, has the record of the first
// revision replaced, as by another engine that has installed the release anew meanwhile.
func (w *world) replaced() *target {
	var once sync.Once
	return w.through(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/jobs") {
			once.Do(w.replaceRecord)
		}
		return resp, err
	})
}

const firstRecord = "sh.helm.release.v1.hooked.v1"

func (w *world) replaceRecord() {
	records := w.client.CoreV1().Secrets(w.namespace)
	record, err := records.Get(w.Context(), firstRecord, metav1.GetOptions{})
	assert.NoError(w, err)
	assert.NoError(w, records.Delete(w.Context(), firstRecord, metav1.DeleteOptions{}))
	record.ObjectMeta = metav1.ObjectMeta{Name: record.Name, Labels: record.Labels}
	record.Labels["status"] = "pending-install"
	_, err = records.Create(w.Context(), record, metav1.CreateOptions{})
	assert.NoError(w, err)
}

// C54: an action that ends late leaves alone what another has recorded of the release since.
func TestEnsure_overwritesNoRecordOfAnother(t *testing.T) {
	w := newWorld(t)
	d := w.desired("hooked", values{"events": "post-install"})
	_, err := w.engine.Ensure(t.Context(), w.replaced(), d)
	require.ErrorContains(t, err, "record release")
	assert.Equal(t, []string{"1 pending-install"}, w.revisions("hooked"))
}

func TestUninstall_deletesNoRecordOfAnother(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("hooked", values{"events": "post-delete"}))
	_, err := w.engine.Uninstall(t.Context(), w.replaced(), w.identity("hooked"), release.Options{}, nil)
	require.NoError(t, err, "its own record is gone")
	assert.Equal(t, []string{"1 pending-install"}, w.revisions("hooked"))
}
