package dashboard

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestUninstall_saysWhatGoes(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	inst := installationOf(d, ns, nil)
	c := create(t, api, d, inst)
	b := open(t, api.RESTConfig(), ns)
	page := objectLink("", "", "applicationinstallations", ns, "web")
	confirm := b.get(page + "/actions/uninstall")
	require.Equal(t, http.StatusOK, confirm.status, confirm.body)
	assert.Contains(t, confirm.body, "1 deleted")
	require.Equal(t, http.StatusSeeOther, b.post(page+"/actions/uninstall", confirm.hidden()).status)
	assert.True(t, client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(inst), inst)) == nil && inst.DeletionTimestamp == nil)
	assert.Equal(t, http.StatusNotFound, b.get(page).status)
}
