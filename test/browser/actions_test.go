package browser

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// K67, K68: from the catalog to an ApplicationInstallation in a user cluster, with a look at what would be created.
func TestAction_install(t *testing.T) {
	w := fleet(t)
	c := clientOf(t, w.berlin.RESTConfig())
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.visit("/catalog")
	b.click(`a[href="/catalog/web"]`)
	b.awaitText("checked by a Job")
	b.check()
	b.click(`a[href^="/catalog/web/install"]`)
	b.choose("#version", "1.0.0")
	b.choose("#cluster", "berlin")
	b.set("#namespace", "team-a")
	b.set("#name", "greeting")
	b.set("#values", "replicas: 3")
	b.check()
	b.click("button.primary")
	b.awaitText("what would be created")
	b.awaitText("Deployment")
	assert.Contains(t, b.text(), "replicas: 3", "the manifest to be committed")
	b.check()
	key := client.ObjectKey{Namespace: "team-a", Name: "greeting"}
	installation := &v1alpha1.ApplicationInstallation{}
	require.Error(t, c.Get(t.Context(), key, installation), "nothing was written yet")

	b.click("button.primary")
	b.await(`location.pathname.endsWith("/applicationinstallations/team-a/greeting")`)
	b.awaitText("greeting")
	b.check()
	require.NoError(t, c.Get(t.Context(), key, installation))
	remove(t, c, installation)
	assert.Equal(t, v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}, installation.Spec.ApplicationRef)
}

// K67: an upgrade shows what would change, line by line, before it is written.
func TestAction_upgradeWithDiff(t *testing.T) {
	w := fleet(t)
	c := clientOf(t, w.berlin.RESTConfig())
	installation := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "page"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
	}
	create(t, c, installation)
	remove(t, c, installation)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.visit(objectPath(system, "berlin", "applicationinstallations", "team-a", "page"))
	b.click(`a[href$="/actions/upgrade"]`)
	b.choose("#version", "1.1.0")
	b.check()
	b.click("button.primary")
	b.awaitText("in place of 1.0.0")
	b.await(`document.querySelector(".compared")`)
	b.check()
	b.click("button.primary")
	b.await(`document.querySelector(".done")`)
	b.check()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(installation), installation))
	assert.Equal(t, "1.1.0", installation.Spec.ApplicationRef.Version)
}

// remove deletes an object at the end of the test.
func remove(t testing.TB, c client.Client, object client.Object) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), env.Limit) // the test's own has ended
		defer cancel()
		assert.NoError(t, c.Delete(ctx, object))
	})
}
