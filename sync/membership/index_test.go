package membership_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/membership"
)

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "a", Name: name} }

func compile(t testing.TB, a *v1alpha1.Application) *membership.Application {
	t.Helper()
	compiled, err := membership.Compile(a)
	require.NoError(t, err)
	return compiled
}

func found(x *membership.Index, obj metav1.Object) []string {
	var names []string
	for _, a := range x.Candidates(deployments, obj) {
		names = append(names, a.Key.Name)
	}
	return names
}

// A28, A29
func TestCompile_refusesWhatIsNoSelector(t *testing.T) {
	a := app("web", "app", "web")
	a.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
	_, err := membership.Compile(a)
	require.ErrorContains(t, err, "Near")
	a.Spec.Selector = nil
	_, err = membership.Compile(a)
	require.ErrorContains(t, err, "missing")
}

// A10, A49, C2
func TestApplication_listsAndSelects(t *testing.T) {
	spec := app("web", "app", "web")
	spec.Spec.Components = []v1alpha1.ApplicationComponent{
		{Kind: "Service", Name: "web"}, {Kind: "Service", Name: "api"}, {Group: "apps", Kind: "Deployment"},
	}
	a := compile(t, spec)
	services := schema.GroupKind{Kind: "Service"}
	assert.True(t, a.Lists(services, "web"))
	assert.True(t, a.Lists(services, "api"))
	assert.False(t, a.Lists(services, "other"))
	assert.False(t, a.Lists(services, ""))
	assert.True(t, a.Lists(deployments, "any"))
	assert.False(t, a.Lists(schema.GroupKind{Group: "other", Kind: "Deployment"}, "any"))
	assert.True(t, a.Matches(deployments, object("any", values{"app": "web"}, nil)))
	assert.False(t, a.Matches(deployments, object("any", values{"app": "api"}, nil)))
	assert.Equal(t, v1alpha1.OwnershipOwn, a.Ownership)
}

func TestIndex_findsByEverySortOfSelector(t *testing.T) {
	selecting := func(name string, requirements ...metav1.LabelSelectorRequirement) *v1alpha1.Application {
		a := app(name, "", "")
		a.Spec.Selector = &metav1.LabelSelector{MatchExpressions: requirements}
		return a
	}
	x := index(t,
		app("equal", "app", "web"),
		selecting("everything"),
		selecting("exists", metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpExists}),
		selecting("in", metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"api", "web"}}),
		selecting("not-in", metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web"}}),
	)
	assert.Equal(t, []string{"equal", "everything", "exists", "in"}, found(x, object("o", values{"app": "web"}, nil)))
	assert.Equal(t, []string{"everything", "exists", "in", "not-in"}, found(x, object("o", values{"app": "api"}, nil)))
	assert.Equal(t, []string{"everything", "not-in"}, found(x, object("o", nil, nil)))
}

func TestIndex_followsSetAndDelete(t *testing.T) {
	x := &membership.Index{}
	assert.True(t, x.Set(compile(t, app("web", "app", "web"))), "a kind more is listed")
	assert.False(t, x.Set(compile(t, app("web", "app", "blog"))), "the same kinds are listed")
	assert.Equal(t, []string{"web"}, found(x, object("o", values{"app": "blog"}, nil)))
	assert.Empty(t, found(x, object("o", values{"app": "web"}, nil)))
	assert.False(t, x.Set(compile(t, app("other", "app", "other"))), "another lists the kind as well")
	assert.Equal(t, map[string][]schema.GroupKind{"a": {deployments}}, x.Listed())

	more := app("web", "app", "web")
	more.Spec.Components = []v1alpha1.ApplicationComponent{{Kind: "Service"}, {Kind: "ConfigMap"}, {Group: "apps", Kind: "Deployment"}}
	assert.True(t, x.Set(compile(t, more)))
	assert.Equal(t, map[string][]schema.GroupKind{"a": {{Kind: "ConfigMap"}, {Kind: "Service"}, deployments}}, x.Listed())

	assert.False(t, x.Delete(key("other")))
	assert.False(t, x.Delete(key("other")), "it is gone already")
	assert.Nil(t, x.Get(key("other")))
	assert.True(t, x.Delete(key("web")))
	assert.Empty(t, x.Listed())
}

// A97: an object costs the same with one Application or thousands.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		var apps []*v1alpha1.Application
		for i := range n {
			a := app(fmt.Sprintf("app-%d", i), "app", fmt.Sprintf("app-%d", i))
			a.Spec.Selector.MatchLabels["env"] = "prod" // all have it in common
			apps = append(apps, a)
		}
		x := index(b, apps...)
		obj := object("web", values{"env": "prod", "app": "app-7"}, nil)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				membership.Decide(x, deployments, obj)
			}
		})
	}
}

// A9, A39: the shortest cycle is reported, from the Application on.
func TestIndex_cycle(t *testing.T) {
	depending := func(name string, on ...string) *v1alpha1.Application {
		a := app(name, "app", name)
		a.Spec.Dependencies = on
		return a
	}
	elsewhere := depending("a", "d")
	elsewhere.Namespace = "b"
	x := index(t, depending("a", "b"), depending("b", "c", "e"), depending("c", "d"), depending("e", "x"), depending("x", "y"), depending("y", "x"), elsewhere)
	assert.Nil(t, x.Cycle(key("d"), nil))
	assert.Nil(t, x.Cycle(key("d"), []string{"missing", "x"}), "a cycle that it is no part of")
	assert.Equal(t, []string{"d", "a", "b", "c", "d"}, x.Cycle(key("d"), []string{"a"}))
	assert.Equal(t, []string{"d", "c", "d"}, x.Cycle(key("d"), []string{"a", "c"}))
	assert.Equal(t, []string{"d", "d"}, x.Cycle(key("d"), []string{"d"}))
}
