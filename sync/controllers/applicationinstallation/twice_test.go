package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// K8: one application may be installed several times in one cluster, also in one namespace and
// in different versions; each goes by itself.
func TestInstallation_severalOfOneApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	installed := make(map[string]*v1alpha1.ApplicationInstallation)
	for name, version := range map[string]string{"blue": "1.0.0", "green": "1.1.0"} {
		inst := &v1alpha1.ApplicationInstallation{ObjectMeta: objectMeta(name)}
		inst.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: w.Namespace, Version: version}
		w.Create(inst)
		installed[name] = inst
	}
	for name, inst := range installed {
		hub.AwaitReady(w.World, inst)
		assert.Len(t, w.releases(name), 1)
		assert.True(t, w.Exists(&v1alpha1.Application{}, name))
	}

	require.NoError(t, w.Client.Delete(t.Context(), installed["blue"]))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "blue")
	assert.Empty(t, w.releases("blue"))
	assert.Len(t, w.releases("green"), 1)
	assert.True(t, w.Exists(&v1alpha1.Application{}, "green"))
}
