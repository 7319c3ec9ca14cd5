package validation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// K46, K47, K52: only what was installed can be withdrawn, and only by force.
func TestWithdrawn(t *testing.T) {
	now := metav1.Now()
	for reason, tc := range map[string]struct {
		installed, force string
		deleting         bool
		offered          string
		want             bool
	}{
		"it is offered":                               {"v1.0.0", "*", false, "v1.0.0", false},
		"it was removed by force":                     {"v1.0.0", "v1.0.0", false, "v2.0.0", true},
		"it is offered under its other name":          {"1.0.0", "*", false, "1.0.0", false},
		"it was removed by force, by its other name":  {"1.0.0", "1.0.0", false, "v2.0.0", true},
		"another version was":                         {"v1.0.0", "v2.0.0", false, "v2.0.0", false},
		"nobody forced it: what is installed stays":   {"v1.0.0", "", false, "v2.0.0", false},
		"it was never installed, and may still come":  {"", "*", false, "v2.0.0", false},
		"an upgrade to it was wanted, and may come":   {"v0.9.0", "*", false, "v2.0.0", false},
		"its definition is deleted by force":          {"v1.0.0", "*", true, "v1.0.0", true},
		"so is one that nothing was installed of yet": {"", "*", true, "v1.0.0", true},
		"its definition waits for it":                 {"v1.0.0", "", true, "v1.0.0", false},
	} {
		inst, def := installation(nil), &v1alpha1.ApplicationDefinition{}
		if tc.installed != "" {
			inst.Status.Application = &v1alpha1.ResolvedApplication{Name: "web", Version: tc.installed}
		}
		if tc.deleting {
			def.DeletionTimestamp = &now
		}
		def.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: tc.force}
		def.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: tc.offered}}
		assert.Equal(t, tc.want, validation.Withdrawn(inst, def), reason)
	}
}

// C59: a definition is for some clusters, whatever an installation says that was begun.
func TestOfferSelector(t *testing.T) {
	production := &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "production"}}
	for reason, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     bool
	}{
		"it is for all":           {nil, true},
		"so it is without a rule": {&metav1.LabelSelector{}, true},
		"it is for others":        {production, false},
	} {
		def := &v1alpha1.ApplicationDefinition{Spec: v1alpha1.ApplicationDefinitionSpec{ClusterSelector: tc.selector}}
		selector, err := validation.OfferSelector(def)
		require.NoError(t, err, reason)
		assert.Equal(t, tc.want, selector.Matches(labels.Set{"environment": "test"}), reason)
		assert.Equal(t, tc.want, selector.Empty(), "no cluster has to be read: %s", reason)
	}

	def := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	def.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Within"}}}
	_, err := validation.OfferSelector(def)
	assert.EqualError(t, err, `clusterSelector of ApplicationDefinition "web": "Within" is not a valid label selector operator`)
}
