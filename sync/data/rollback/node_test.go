package rollback

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// C64: a volume that waits for its first consumer is made where the old one can be used.
func TestReaches_asTheSchedulerWould(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"zone": "a", "generation": "5"}}}
	label := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	name := func(value string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}
	}
	both := label("zone", corev1.NodeSelectorOpIn, "a")
	both.MatchExpressions = append(both.MatchExpressions, label("generation", corev1.NodeSelectorOpLt, "5").MatchExpressions...)
	for reason, test := range map[string]struct {
		terms []corev1.NodeSelectorTerm
		want  bool
	}{
		"in":                        {[]corev1.NodeSelectorTerm{label("zone", corev1.NodeSelectorOpIn, "b", "a")}, true},
		"not in":                    {[]corev1.NodeSelectorTerm{label("zone", corev1.NodeSelectorOpNotIn, "a")}, false},
		"exists":                    {[]corev1.NodeSelectorTerm{label("zone", corev1.NodeSelectorOpExists)}, true},
		"does not exist":            {[]corev1.NodeSelectorTerm{label("zone", corev1.NodeSelectorOpDoesNotExist)}, false},
		"greater":                   {[]corev1.NodeSelectorTerm{label("generation", corev1.NodeSelectorOpGt, "4")}, true},
		"all of a term":             {[]corev1.NodeSelectorTerm{both}, false},
		"one of the terms":          {[]corev1.NodeSelectorTerm{both, name("one")}, true},
		"name":                      {[]corev1.NodeSelectorTerm{name("two")}, false},
		"an empty term has no Node": {[]corev1.NodeSelectorTerm{{}}, false},
	} {
		affinity := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: test.terms}}
		assert.Equal(t, test.want, reaches(node, affinity), reason)
	}
	assert.True(t, reaches(node, nil), "a volume of a network can be used everywhere")
}

// C64: a Node on which Pods are started comes before one that is cordoned, and that before one that is not there.
func TestUnfit_ordersNodes(t *testing.T) {
	ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	serves := &corev1.Node{Status: corev1.NodeStatus{Conditions: ready}}
	cordoned := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}, Status: corev1.NodeStatus{Conditions: ready}}
	down := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}}}
	leaving := &corev1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}, Status: corev1.NodeStatus{Conditions: ready}}
	assert.Less(t, unfit(serves), unfit(cordoned))
	assert.Less(t, unfit(cordoned), unfit(down))
	assert.Equal(t, unfit(down), unfit(leaving))
}

// C64: a claim whose definition does not fit its volume would never be bound.
func TestFitting_asksForNoMoreThanTheVolumeHas(t *testing.T) {
	size := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size("2Gi"), StorageClassName: "fast", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
	}}
	for reason, test := range map[string]struct {
		spec, want corev1.PersistentVolumeClaimSpec
	}{
		"nothing is known of the claim": {corev1.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimSpec{
			AccessModes: pv.Spec.AccessModes, Resources: corev1.VolumeResourceRequirements{Requests: size("2Gi")},
		}},
		"it was to be larger, and had another class": {
			corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("slow"), Resources: corev1.VolumeResourceRequirements{Requests: size("3Gi")},
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, DataSource: &corev1.TypedLocalObjectReference{Name: "x"}},
			corev1.PersistentVolumeClaimSpec{AccessModes: pv.Spec.AccessModes, Resources: corev1.VolumeResourceRequirements{Requests: size("2Gi")}},
		},
		"it asks for less": {
			corev1.PersistentVolumeClaimSpec{AccessModes: pv.Spec.AccessModes, Resources: corev1.VolumeResourceRequirements{Requests: size("1Gi")}},
			corev1.PersistentVolumeClaimSpec{AccessModes: pv.Spec.AccessModes, Resources: corev1.VolumeResourceRequirements{Requests: size("1Gi")}},
		},
	} {
		test.want.VolumeName, test.want.StorageClassName = "pv", ptr.To("fast")
		got := fitting(&corev1.PersistentVolumeClaim{Spec: test.spec}, pv)
		assert.Equal(t, test.want, got.Spec, reason)
	}
}
