package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// K68: a Pod that begins to crash is seen in the tree, in a user cluster, without a reload and without losing one's place; where the
// user may not watch, the page says so.
func TestLive_treeFollowsItsObjects(t *testing.T) {
	w := fleet(t)
	ns := w.berlin.Namespace(t)
	c := clientOf(t, w.berlin.RESTConfig())
	removeAll(t, w.berlin, &v1alpha1.ApplicationInstallation{}, ns)
	require.NoError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}}))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
	require.NoError(t, c.Create(t.Context(), pod))
	create(t, c, &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
		Status:     v1alpha1.ApplicationInstallationStatus{Inventory: &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{{ID: ns + "_web__Pod", Version: "v1"}}}},
	})
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.visit(objectPath(system, "berlin", "applicationinstallations", ns, "web") + "/tree")
	b.await(`document.querySelectorAll("[role=treegrid] tbody tr").length === 2`)
	eval[chromedp.Void](b, `window.sameDocument = true; null`)
	for begun := time.Now(); !strings.Contains(b.focused(), "tr Pod"); { // its keyboard comes after the page
		require.Less(t, time.Since(begun), limit)
		eval[chromedp.Void](b, `document.querySelector("[role=treegrid] tbody tr").focus(); null`)
		b.press(kb.ArrowDown)
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	require.NoError(t, c.Status().Update(t.Context(), pod))
	b.await(`document.querySelector("[role=treegrid]").innerText.includes("Failed")`)
	assert.True(t, eval[bool](b, "window.sameDocument"), "nothing was reloaded")
	assert.Contains(t, b.focused(), "tr Pod", "the focus is where it was")
	assert.NotContains(t, b.text(), "You may not watch")

	name := "reads-" + ns
	config, err := w.berlin.AddUser(name)
	require.NoError(t, err)
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}, {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
	}
	meta := metav1.ObjectMeta{Namespace: ns, Name: name}
	require.NoError(t, c.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
	require.NoError(t, c.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	w.berlin.AwaitGranted(t, name, ns, rules[1])
	reads := open(t, start(t, config, ns)) // of berlin itself
	reads.visit(objectPath("", "", "applicationinstallations", ns, "web") + "/tree")
	reads.awaitText("You may not watch Pod in namespace " + ns)
	reads.check()
}
