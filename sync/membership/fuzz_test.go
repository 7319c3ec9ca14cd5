package membership_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/membership"
)

// Decide is idempotent, whatever an object carries and Applications select on; it touches nothing
// but its marks, and never an annotation that another writer set (C52). The Application that gets an object
// claims it.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(2000) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, seed))
		var apps []*v1alpha1.Application
		for _, name := range []string{"x", "y", "z"} {
			if r.IntN(4) > 0 {
				apps = append(apps, randomApp(r, name))
			}
		}
		x := index(t, apps...)
		obj := object("web", randomValues(r, "app", "tier", partOf), randomValues(r, application, injected))
		before := obj.DeepCopy()

		membership.Decide(x, deployments, obj).Apply(obj)
		again := membership.Decide(x, deployments, obj)

		assert.Empty(t, again.Annotations, "labels %v annotations %v became %v %v", before.Labels, before.Annotations, obj.Labels, obj.Annotations)
		assert.Empty(t, again.Labels, "labels %v annotations %v became %v %v", before.Labels, before.Annotations, obj.Labels, obj.Annotations)
		for _, key := range []string{"app", "tier"} {
			assert.Equal(t, before.Labels[key], obj.Labels[key])
		}
		name, annotated := before.Annotations[application]
		if annotated && (name == "" || name != before.Annotations[injected]) {
			assert.Equal(t, name, obj.Annotations[application])
		}
		if owner := x.Get(types.NamespacedName{Namespace: "a", Name: obj.Annotations[application]}); owner != nil && obj.Annotations[application] != name {
			assert.True(t, owner.Claims(deployments, before), "labels %v annotations %v became %v %v", before.Labels, before.Annotations, obj.Labels, obj.Annotations)
		}
		if given, ok := before.Labels[partOf]; ok && given != before.Annotations[injected] {
			assert.Equal(t, given, obj.Labels[partOf])
		}
	})
}

func randomApp(r *rand.Rand, name string) *v1alpha1.Application {
	a := app(name, "unused", "")
	a.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, key := range []string{"app", "tier", partOf} {
		switch r.IntN(8) {
		case 0:
			a.Spec.Selector.MatchLabels[key] = randomName(r)
		case 1, 2, 3, 4:
			operator := []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn,
				metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}[r.IntN(4)]
			requirement := metav1.LabelSelectorRequirement{Key: key, Operator: operator}
			if operator == metav1.LabelSelectorOpIn || operator == metav1.LabelSelectorOpNotIn {
				requirement.Values = []string{randomName(r), randomName(r)}
			}
			a.Spec.Selector.MatchExpressions = append(a.Spec.Selector.MatchExpressions, requirement)
		}
	}
	if r.IntN(4) == 0 {
		a.Spec.Components[0].Name = []string{"web", "other"}[r.IntN(2)]
	}
	if r.IntN(6) == 0 {
		a.DeletionTimestamp = &metav1.Time{}
	}
	return a
}

func randomValues(r *rand.Rand, keys ...string) values {
	v := values{}
	for _, key := range keys {
		if r.IntN(3) > 0 {
			v[key] = randomName(r)
		}
	}
	return v
}

func randomName(r *rand.Rand) string { return []string{"x", "y", "z", "x", "y", ""}[r.IntN(6)] }
