package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// Rights that people have in a cluster, each with those before it.
var (
	mayPatch  = rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"applicationinstallations", "gitsyncs"}, Verbs: []string{"patch"}}
	mayUse    = rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"applicationdefinitions"}, Verbs: []string{"install"}}
	mayDelete = rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"applicationinstallations"}, Verbs: []string{"delete"}}
)

// mayLook is the right to read the catalog, which access.md gives to all who are authenticated.
var mayLook = rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"applicationdefinitions"}, Verbs: []string{"get", "list"}}

// grant gives a user rights in a namespace of a cluster by a RoleBinding, as access.md gives them to tenants, and the catalog.
func grant(t *testing.T, api *env.Cluster, namespace, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	allow(t, api, "", name, mayLook)
	allow(t, api, namespace, name, rules...)
}

// K70: in a user cluster, the dashboard does as its users what they may there, and names the right that they lack; what they may
// in the hub does not count.
func TestActions_inAUserClusterAsTheViewer(t *testing.T) {
	api := hub(t)
	berlin := env.Shared(t, env.Options{Name: "berlin", NoControllers: true, CRDs: []string{"../../../charts/waybill/crds"}})
	ns, kubeconfigs := api.Namespace(t), api.Namespace(t)
	there := berlin.Namespace(t)
	own, err := env.Kubeconfig("dashboard", account(t, berlin))
	require.NoError(t, err)
	k := cluster(ns, "berlin")
	k.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "of-waybill"}
	d := shop(t, "web-"+there)
	c := create(t, api, k, d.DeepCopy())
	require.NoError(t, c.Create(t.Context(), kubeconfigOf(kubeconfigs, ns+".berlin", own)))
	create(t, berlin, d)
	s := openShared(t, api.RESTConfig(), func(o *Options) { o.KubeconfigNamespace = kubeconfigs })

	upgrade := url.Values{"step": {"apply"}, "version": {"1.1.0"}, "values": {"title: New\n"}}
	back := url.Values{"step": {"apply"}, "revision": {"1"}, "keepValues": {"true"}}
	lacks := func(right string) string {
		return "You may not " + right + " in namespace " + there
	}
	lacksPatch, lacksDelete := lacks("patch applicationinstallations.apps.waybill.dev web"), lacks("delete applicationinstallations.apps.waybill.dev web")
	lacksUse := "You may not install applicationdefinitions.apps.waybill.dev " + d.Name + " in namespace " + there
	for name, tc := range map[string]struct {
		rules []rbacv1.PolicyRule
		// lacks is the right that is missing for each action; empty if it is done.
		lacks map[string]string
	}{
		"views":    {[]rbacv1.PolicyRule{mayRead}, map[string]string{"reconcile": lacksPatch, "upgrade": lacksPatch, "rollback": lacksPatch, "uninstall": lacksDelete}},
		"patches":  {[]rbacv1.PolicyRule{mayRead, mayPatch}, map[string]string{"reconcile": "", "upgrade": lacksUse, "rollback": lacksUse, "uninstall": lacksDelete}},
		"upgrades": {[]rbacv1.PolicyRule{mayRead, mayPatch, mayUse}, map[string]string{"reconcile": "", "upgrade": "", "rollback": "", "uninstall": lacksDelete}},
		"does all": {[]rbacv1.PolicyRule{mayRead, mayPatch, mayUse, mayDelete}, map[string]string{"reconcile": "", "upgrade": "", "rollback": "", "uninstall": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			user := strings.ReplaceAll(name, " ", "-") + "-" + there
			grant(t, berlin, there, user, tc.rules...)
			grant(t, api, ns, user, mayRead, mayPatch, mayUse, mayDelete) // in the hub, they may more
			inst := installationOf(d, there, map[string]any{"title": "Old"})
			inst.Status.History = []v1alpha1.InstallationRecord{
				{Revision: 2, Version: "1.1.0", Outcome: v1alpha1.InstallationDeployed, FinishedAt: metav1.Now()},
				{Revision: 1, Version: "1.0.0", Outcome: v1alpha1.InstallationDeployed, FinishedAt: metav1.Now()},
			}
			remote := create(t, berlin, inst)
			b := s.signIn(user)
			page := objectLink(ns, "berlin", "applicationinstallations", there, "web")
			require.Equal(t, http.StatusOK, b.page(page).status)
			for _, step := range []struct {
				action string
				form   url.Values
				done   func(*v1alpha1.ApplicationInstallation) bool
			}{
				{"reconcile", url.Values{"step": {"apply"}}, func(i *v1alpha1.ApplicationInstallation) bool {
					return i.Annotations[v1alpha1.ReconcileAtAnnotation] != ""
				}},
				{"upgrade", upgrade, func(i *v1alpha1.ApplicationInstallation) bool { return i.Spec.ApplicationRef.Version == "1.1.0" }},
				{"rollback", back, func(i *v1alpha1.ApplicationInstallation) bool { return i.Spec.ApplicationRef.Version == "1.0.0" }},
				{"uninstall", url.Values{"step": {"apply"}}, nil},
			} {
				before := &v1alpha1.ApplicationInstallation{}
				require.NoError(t, remote.Get(t.Context(), client.ObjectKeyFromObject(inst), before))
				step.form.Set("uid", string(before.UID))
				step.form.Set("generation", strconv.FormatInt(before.Generation, 10))
				got := b.post(page+"/actions/"+step.action, step.form)
				after := &v1alpha1.ApplicationInstallation{}
				err := remote.Get(t.Context(), client.ObjectKeyFromObject(inst), after)
				if missing := tc.lacks[step.action]; missing != "" {
					assert.Equal(t, http.StatusForbidden, got.status, step.action)
					assert.Contains(t, got.text(), missing, step.action)
					assert.Contains(t, b.page(page).text(), missing, "the button says so")
					require.NoError(t, err)
					assert.Equal(t, before.ResourceVersion, after.ResourceVersion, "%s: nothing was written", step.action)
					continue
				}
				require.Equal(t, http.StatusSeeOther, got.status, "%s: %s", step.action, got.text())
				if step.done == nil {
					assert.True(t, err != nil || after.DeletionTimestamp != nil, step.action)
					continue
				}
				require.NoError(t, err)
				assert.True(t, step.done(after), step.action)
			}
		})
	}
}

// K70: a tenant of the hub with few rights suspends and resumes what is theirs, and is told what they lack for what is not.
func TestActions_ofATenantInTheHub(t *testing.T) {
	api := hub(t)
	mine, other := api.Namespace(t), api.Namespace(t)
	tenant := "tenant-" + mine
	grant(t, api, mine, tenant, mayRead, mayPatch)
	foreign, gs := syncOf(other), syncOf(mine)
	c := create(t, api, gs, foreign, cluster(mine, "berlin"))
	allow(t, api, other, tenant, mayRead)
	b := openShared(t, account(t, api)).signIn(tenant)
	for _, action := range []string{"suspend", "resume", "reconcile"} {
		page := objectLink("", "", "gitsyncs", mine, "team") + "/actions/" + action
		confirm := b.page(page)
		require.Equal(t, http.StatusOK, confirm.status, confirm.text())
		require.Equal(t, http.StatusSeeOther, b.post(page, confirm.hidden()).status, action)
	}
	for path, right := range map[string]string{
		objectLink("", "", "gitsyncs", other, "team") + "/actions/suspend":            "You may not patch gitsyncs.apps.waybill.dev team in namespace " + other,
		objectLink("", "", "kubernetesclusters", mine, "berlin") + "/actions/suspend": "You may not patch kubernetesclusters.apps.waybill.dev berlin in namespace " + mine,
	} {
		got := b.page(path)
		assert.Equal(t, http.StatusForbidden, got.status, path)
		assert.Contains(t, got.text(), right)
	}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(gs), gs))
	assert.NotEmpty(t, gs.Annotations[v1alpha1.ReconcileAtAnnotation])
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
	assert.False(t, foreign.Spec.Suspend)
}

// The rights that a page asks for are those that admission asks for: install-into is one on the namespace that is installed into.
func TestActions_intoAnotherNamespace(t *testing.T) {
	api := hub(t)
	from, into := api.Namespace(t), api.Namespace(t)
	d := shop(t, "web-"+from)
	inst := installationOf(d, from, map[string]any{"title": "Old"})
	inst.Spec.Namespace = &v1alpha1.TargetNamespace{Name: into, Labels: map[string]string{"team": "a"}}
	inst.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "defaults"}}
	create(t, api, d, inst)
	s := openShared(t, account(t, api))
	page := objectLink("", "", "applicationinstallations", from, "web")
	mayInto := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"install-into", "patch"}}
	mayValues := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}
	inOne, inBoth := "one-"+from, "both-"+from
	grant(t, api, from, inOne, mayRead, mayPatch, mayUse)
	grant(t, api, from, inBoth, mayRead, mayPatch, mayUse, mayValues)
	allow(t, api, into, inBoth, mayInto)
	refused := s.signIn(inOne).page(page + "/actions/upgrade")
	assert.Equal(t, http.StatusForbidden, refused.status)
	for _, right := range []string{
		"You may not install-into namespaces " + into + " in namespace " + into, "You may not patch namespaces " + into + " in namespace " + into,
		"You may not get configmaps defaults in namespace " + from,
	} {
		assert.Contains(t, refused.text(), right)
	}
	assert.NotContains(t, refused.text(), "You may not install applicationdefinitions")
	allowed := s.signIn(inBoth).page(page + "/actions/upgrade")
	assert.Equal(t, http.StatusOK, allowed.status, allowed.text())
}
