package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// K53: a Secret that passes for a record of a revision which cannot be holds up nothing, and is reported; what comes
// next does not count on from it, before or after it is deleted.
func TestInstallation_ignoresRevisionsThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	real := &corev1.Secret{}
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "sh.helm.release.v1.web.v1"}, real))
	forged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "sh.helm.release.v1.web.v9223372036854775807", Labels: real.Labels}, Type: real.Type}
	forged.Labels["version"] = "9223372036854775807"
	require.NoError(t, w.Client.Create(t.Context(), forged))

	scale := func(replicas int) *v1alpha1.ApplicationInstallation {
		hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
			i.Spec.Values = values(t, map[string]any{"replicas": replicas})
		})
		return hub.AwaitReady(w.World, inst)
	}
	assert.EqualValues(t, 2, scale(2).Status.Release.Revision)
	w.assertNotApplied("the following Secrets in namespace " + w.Namespace + " are labelled as Helm's records of release web, but Helm did not create them: " +
		"their names or revisions do not match. They are ignored; delete them: " + forged.Name)
	require.NoError(t, w.Client.Delete(t.Context(), forged))
	assert.EqualValues(t, 3, scale(3).Status.Release.Revision)
}
