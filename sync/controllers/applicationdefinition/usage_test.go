package applicationdefinition_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// uses writes into the status of a cluster what its own controller would.
func (s *suite) uses(name string, installations ...v1alpha1.InstallationSummary) {
	s.t.Helper()
	kc := &v1alpha1.KubernetesCluster{}
	require.NoError(s.t, s.Get(s.t.Context(), s.key(name), kc))
	kc.Status.Installations, kc.Status.Reachable = installations, true
	require.NoError(s.t, s.Status().Update(s.t.Context(), kc))
}

func installed(name, definition, version string) v1alpha1.InstallationSummary {
	return v1alpha1.InstallationSummary{Namespace: "apps", Name: name, Definition: definition, Version: version, Ready: metav1.ConditionTrue}
}

// C47: who uses which version is rolled up from the clusters.
func TestUsage_isRolledUp(t *testing.T) {
	s := newSuite(t)
	s.engage("eu-1", shared(t, "user").RESTConfig(), nil)
	s.engage("eu-2", shared(t, "other").RESTConfig(), nil)
	s.define("web")
	until(t, s, "web", isReady)
	s.uses("eu-1", installed("b", "web", "1.0.0"), installed("a", "web", "1.0.0"), installed("c", "db", "1.0.0"))
	s.uses("eu-2", installed("d", "web", "2.0.0"))
	want := []v1alpha1.VersionUsage{
		{Version: "1.0.0", Count: 2, Installations: []string{s.ns + "/eu-1/apps/a", s.ns + "/eu-1/apps/b"}},
		{Version: "2.0.0", Count: 1, Installations: []string{s.ns + "/eu-2/apps/d"}},
	}
	d := until(t, s, "web", func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 2 })
	assert.Equal(t, want, d.Status.UsedBy)
	s.uses("eu-1")
	s.uses("eu-2")
	until(t, s, "web", func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 0 })
}

// C47: a definition that is used is held; the message names who uses it and what to do.
func TestUsage_holdsADefinition(t *testing.T) {
	s := newSuite(t)
	s.engage("eu-1", shared(t, "user").RESTConfig(), nil)
	s.define("web")
	until(t, s, "web", isReady)
	s.uses("eu-1", installed("a", "web", "1.0.0"))
	until(t, s, "web", func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 1 })

	require.NoError(t, s.Delete(t.Context(), newDefinition("web")))
	d := until(t, s, "web", says(v1alpha1.InUseReason, "used by"))
	assert.Equal(t, "used by 1 installation: "+s.ns+"/eu-1/apps/a; delete them, or annotate the definition with "+
		`apps.waybill.dev/force-remove: "*" to have them uninstalled`, condition(d, v1alpha1.ReadyCondition).Message)
	assert.NotNil(t, get(t, s.user("user"), "web"), "the copy stays as long as the definition")

	change(t, s, "web", func(d *v1alpha1.ApplicationDefinition) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.ForceRemoveAnnotation, "*")
	})
	until(t, s, "web", says(v1alpha1.DeletingReason, "waiting for 1 installation to be uninstalled: "+s.ns+"/eu-1/apps/a"))
	s.uses("eu-1")
	until(t, s, "web", absent)
	until(t, s.user("user"), "web", absent)
}

// C47: what is known of a cluster that is lost holds a definition too; the way out is named.
func TestUsage_ofALostCluster(t *testing.T) {
	s := newSuite(t)
	kc := s.engage("eu-1", shared(t, "user").RESTConfig(), nil)
	s.define("web")
	until(t, s, "web", isReady)
	s.uses("eu-1", installed("a", "web", "1.0.0"))
	require.NoError(t, s.Get(t.Context(), s.key("eu-1"), kc))
	kc.Status.Reachable = false
	require.NoError(t, s.Status().Update(t.Context(), kc))
	until(t, s, "web", func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 1 })
	require.NoError(t, s.Delete(t.Context(), newDefinition("web")))
	until(t, s, "web", says(v1alpha1.InUseReason, "(cluster "+s.ns+"/eu-1 is not reachable: if it is lost for good, delete its KubernetesCluster)"))
	require.NoError(t, s.Delete(t.Context(), kc))
	until(t, s, "web", absent)
}

// C45, C47: what a cluster says that it has installed of a definition that it was never offered holds
// nothing; what was begun while it was offered does.
func TestUsage_ofWhatWasNeverOffered(t *testing.T) {
	s := newSuite(t)
	s.engage("eu-1", shared(t, "user").RESTConfig(), map[string]string{"env": "prod"})
	s.engage("eu-2", shared(t, "other").RESTConfig(), nil)
	web := s.define("web", func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	})
	until(t, s, "web", isReady)
	s.uses("eu-2", installed("forged", "web", "1.0.0"))
	s.uses("eu-1", installed("a", "web", "1.0.0"))
	d := until(t, s, "web", func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 1 })
	assert.Equal(t, []string{s.ns + "/eu-1/apps/a"}, d.Status.UsedBy[0].Installations)

	kc := &v1alpha1.KubernetesCluster{}
	require.NoError(t, s.Get(t.Context(), s.key("eu-2"), kc))
	kc.Status.Definitions = map[string]string{"web": string(web.UID)}
	require.NoError(t, s.Status().Update(t.Context(), kc))
	s.uses("eu-2", installed("kept", "web", "1.0.0"))
	until(t, s, "web", func(d *v1alpha1.ApplicationDefinition) bool {
		return len(d.Status.UsedBy) == 1 && d.Status.UsedBy[0].Count == 2
	})
	s.uses("eu-1")
	s.uses("eu-2")
	until(t, s, "web", func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 0 })
}
