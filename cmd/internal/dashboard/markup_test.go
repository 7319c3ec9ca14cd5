package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
)

// What users of a cluster write is text on every page.
func TestPages_markupIsText(t *testing.T) {
	const evil = `<img src=x onerror=alert(1)>"'&lt;`
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	d.Spec.DisplayName, d.Spec.Description = evil[:30], evil
	inst := installationOf(d, ns, map[string]any{"title": evil})
	inst.Status.Conditions = ready(metav1.ConditionFalse, evil)
	inst.Status.History = []v1alpha1.InstallationRecord{{Revision: 1, Version: evil, Outcome: v1alpha1.InstallationFailed, Message: evil, FinishedAt: metav1.Now()}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
	gs := syncOf(ns)
	gs.Status.Revision, gs.Status.AttemptedRevision = evil, evil
	runs(t, create(t, api, d, inst, gs), pod)
	b := open(t, api.RESTConfig(), ns)
	page, sync := objectLink("", "", "applicationinstallations", ns, "web"), objectLink("", "", "gitsyncs", ns, "team")
	for _, path := range []string{
		page, page + "/tree", page + "/values", page + "/revisions", page + "/revisions?from=" + url.QueryEscape(evil) + "&to=2", page + "/manifests", page + "/diff", page + "/rights",
		page + "/actions/upgrade", page + "/actions/uninstall", page + "/actions/" + url.PathEscape(evil), sync, sync + "/commit", sync + "/tree",
		"/catalog/" + d.Name, "/catalog/" + d.Name + "/install?name=" + url.QueryEscape(evil), "/catalog/" + url.PathEscape(evil),
		logsLink(types.NamespacedName{}, ns, "web") + "?container=" + url.QueryEscape(evil),
	} {
		got := b.get(path)
		assert.NotContains(t, got.body, "<img src=x", path)
		assert.NotContains(t, got.body, "javascript:", path)
		assert.NotContains(t, got.body, " style=", "the policy would ignore it: "+path)
		assert.NotEqual(t, http.StatusInternalServerError, got.status, path)
		assert.Contains(t, got.body, "<!DOCTYPE html>", path)
	}
	review := b.post("/catalog/"+d.Name+"/install", url.Values{"step": {"review"}, "version": {"1.1.0"}, "namespace": {ns}, "name": {"shop"}, "values": {"title: '" + strings.ReplaceAll(evil, "'", "") + "'\n"}})
	require.Equal(t, http.StatusOK, review.status, review.body)
	assert.NotContains(t, review.body, "<img src=x")
}
