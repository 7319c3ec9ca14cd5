package dashboard

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

func TestUninstall_saysWhatGoes(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	inst := installationOf(d, ns, nil)
	c := create(t, api, d, inst)
	b := open(t, api.RESTConfig(), ns)
	page := objectLink("", "", "applicationinstallations", ns, "web")
	assert.NotContains(t, b.get(page).body, "Why may I not?", "who may do everything")
	confirm := b.get(page + "/actions/uninstall")
	require.Equal(t, http.StatusOK, confirm.status, confirm.body)
	assert.Contains(t, confirm.body, "1 deleted")
	require.Equal(t, http.StatusSeeOther, b.post(page+"/actions/uninstall", confirm.hidden()).status)
	assert.True(t, client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(inst), inst)) == nil && inst.DeletionTimestamp == nil)
	assert.Equal(t, http.StatusNotFound, b.get(page).status)
}

// What stays is not said to go, and the other way round.
func TestUninstall_saysWhatStays(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		forbid, gone bool
		button       string
		says, not    string
	}{
		"heeded":    {"the definition has nothing against it", false, false, "Delete and keep what it installed", "What it installed stays, as spec.deletionPolicy is Orphan", "everything that it installed"},
		"forbidden": {"the definition forbids it", true, false, "Uninstall", "forbids Orphan (spec.forbidOrphan): what is installed is uninstalled with the installation", "stays, as"},
		"not known": {"the definition is gone", false, true, "Delete", "unless its definition forbids that: it is not known whether", "everything that it installed"},
	} {
		t.Run(name, func(t *testing.T) {
			api := hub(t)
			ns := api.Namespace(t)
			d := shop(t, "web-"+ns)
			d.Spec.ForbidOrphan = tc.forbid
			inst := installationOf(d, ns, nil)
			inst.Spec.DeletionPolicy = v1alpha1.InstallationOrphan
			c := create(t, api, d, inst)
			if tc.gone {
				require.NoError(t, c.Delete(t.Context(), d))
			}
			b, page := open(t, api.RESTConfig(), ns), objectLink("", "", "applicationinstallations", ns, "web")
			assert.Contains(t, b.get(page).body, `href="`+page+`/actions/uninstall">`+tc.button+`</a>`, tc.reason)
			rights := b.get(page + "/rights").text()
			assert.Contains(t, rights, tc.says, tc.reason)
			assert.NotContains(t, rights, tc.not, tc.reason)
			confirm := b.get(page + "/actions/uninstall")
			require.Equal(t, http.StatusOK, confirm.status, confirm.body)
			assert.Contains(t, confirm.body, ">"+tc.button+"</button>", tc.reason)
			assert.Contains(t, confirm.body, tc.says, tc.reason)
			assert.NotContains(t, confirm.body, tc.not, tc.reason)
		})
	}
}
