package browser

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// A tenant sees their own, is told that it is not all, and what they may not.
func TestTenant_seesOnlyTheirOwn(t *testing.T) {
	w := fleet(t)
	ns := w.hub.Namespace(t)
	removeAll(t, w.hub, &v1alpha1.KubernetesCluster{}, ns)
	create(t, clientOf(t, w.hub.RESTConfig()), &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mine"}})
	b := open(t, start(t, tenant(t, w.hub, ns), ns))
	b.awaitText("mine")
	assert.NotContains(t, b.text(), "helsinki")
	assert.Contains(t, b.text(), ns)
	b.check()
	b.visit("/catalog")
	b.awaitText("cert-manager")
	b.visit("/search?q=helsinki")
	b.awaitText("Nothing has that in its name")
	b.expects("403")
	b.visit(objectPath("", "", "kubernetesclusters", system, "helsinki"))
	b.awaitText("You may not read")
	b.check()
}
