package dashboard

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

func TestRollback_setsTheVersionAgain(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	inst := installationOf(d, ns, nil)
	inst.Spec.ApplicationRef.Version = "1.1.0"
	inst.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Namespace: ns, Revision: 2}
	inst.Status.History = []v1alpha1.InstallationRecord{
		{Revision: 3, Version: "1.1.0", Outcome: v1alpha1.InstallationRolledBack, FinishedAt: metav1.Now()},
		{Revision: 2, Version: "1.1.0", Outcome: v1alpha1.InstallationDeployed, FinishedAt: metav1.Now()},
		{Revision: 1, Version: "1.0.0", Outcome: v1alpha1.InstallationDeployed, FinishedAt: metav1.Now(), ValuesDigest: "other"},
	}
	c := create(t, api, d, inst)
	b := open(t, api.RESTConfig(), ns)
	page := objectLink("", "", "applicationinstallations", ns, "web")
	timeline := b.get(page + "/revisions").body
	assert.Contains(t, timeline, "Roll back to revision 1")
	assert.NotContains(t, timeline, "Roll back to revision 2", "it is installed")
	assert.Contains(t, timeline, `<span class="mark failing"><span aria-hidden="true">✗</span> RolledBack</span>`, "it did not become healthy")
	assert.Contains(t, timeline, `</span> Deployed</span>`)
	assert.Contains(t, b.get(page).body, `<a href="/catalog/`+d.Name+`">`)
	assert.Contains(t, b.get(page+"/revisions?from=1&to=2").body, "It is not known: ", "Helm has no record of it")

	lost := b.get(page + "/actions/rollback?step=review&revision=1")
	assert.Equal(t, http.StatusUnprocessableEntity, lost.status)
	assert.Contains(t, lost.body, "Keep the values as they are")
	assert.Equal(t, http.StatusUnprocessableEntity, b.post(page+"/actions/rollback", url.Values{"step": {"review"}, "revision": {"7"}}).status)
	review := b.post(page+"/actions/rollback", url.Values{"step": {"review"}, "revision": {"1"}, "keepValues": {"true"}})
	require.Equal(t, http.StatusOK, review.status, review.body)
	assert.Contains(t, review.text(), "-    version: 1.1.0")
	require.Equal(t, http.StatusSeeOther, b.post(page+"/actions/rollback", review.hidden()).status)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(inst), inst))
	assert.Equal(t, "1.0.0", inst.Spec.ApplicationRef.Version)
}
