package browser

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// script would be noticed by the variable that it sets, and by what the browser says of the CSP that stops it.
const script = `<script>window.pwned = true</script><img src="x" onerror="window.pwned = true">`

// What others write is text, and their pictures run nothing, even opened by themselves.
func TestHostile_markupIsText(t *testing.T) {
	w := fleet(t)
	c := clientOf(t, w.hub.RESTConfig())
	d := &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "hostile"},
		Spec: v1alpha1.ApplicationDefinitionSpec{
			DisplayName: "Hostile" + script, Description: script, DocumentationURL: "https://docs.example.com/?" + `"onclick="window.pwned=true`,
			Logo: &v1alpha1.Logo{Format: "svg+xml", Data: []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="window.pwned=true"><script>window.pwned = true</script></svg>`)},
			Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: &v1alpha1.ApplicationTemplate{
				Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: "https://charts.example.com", ChartName: "x", ChartVersion: "1.0.0"}},
			}}},
		},
		Status: v1alpha1.ApplicationDefinitionStatus{ReconcileStatus: v1alpha1.ReconcileStatus{Conditions: []metav1.Condition{{
			Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "Hostile", Message: script, LastTransitionTime: metav1.Now(),
		}}}},
	}
	create(t, c, d)
	remove(t, c, d)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	for _, path := range []string{"/catalog", objectPath("", "", "applicationdefinitions", "", "hostile"), "/search?q=" + "%3Cscript%3Ewindow.pwned%3Dtrue%3C/script%3E"} {
		b.visit(path)
		b.await(`document.body.innerText.includes("<script>")`)
		assert.False(t, eval[bool](b, "!!window.pwned"), path)
	}
	b.visit("/catalog")
	b.await(`[...document.images].every((i) => i.complete)`)
	b.expects("Blocked script execution") // which is what stops it
	b.visit("/logos/hostile")
	assert.False(t, eval[bool](b, "!!window.pwned"), "a logo that is opened by itself")
}
