package webhooks_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// A27-A31, C48: what CEL cannot say.
func TestApplication_refuses(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.Application)
		field  string
	}{
		"name":        {"A27", func(a *v1alpha1.Application) { a.Name = "Not_a_subdomain" }, "metadata.name"},
		"no selector": {"A28", func(a *v1alpha1.Application) { a.Spec.Selector = nil }, "spec.selector"},
		"operator": {"A29", func(a *v1alpha1.Application) {
			a.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near", Values: []string{"b"}}}
		}, "spec.selector.matchExpressions[0].operator"},
		"selector": {"In needs values", func(a *v1alpha1.Application) {
			a.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}
		}, "spec.selector.matchExpressions[0].values"},
		"itself": {"would wait for ever", func(a *v1alpha1.Application) { a.Spec.Dependencies = []string{a.Name} }, "spec.dependencies[0]"},
		"no probe": {"A31", func(a *v1alpha1.Application) {
			a.Spec.HealthCheck = healthCheck(`{"spec": {"containers": [{"name": "a", "image": "i"}]}}`)
		}, "spec.healthCheck.template.spec.containers"},
		"typo": {"A30, strict decoding", func(a *v1alpha1.Application) { a.Spec.HealthCheck = healthCheck(`{"spec": {"containerz": []}}`) }, "containerz"},
		"no Pod": {"A30, only the API server knows (C10)", func(a *v1alpha1.Application) {
			a.Spec.HealthCheck = healthCheck(`{"spec": {"restartPolicy": "Sometimes", "containers": [{"name": "a", "image": "i", "readinessProbe": {"exec": {"command": ["true"]}}}]}}`)
		}, "spec.healthCheck.template.spec.restartPolicy"},
		"expression": {"C39", func(a *v1alpha1.Application) {
			a.Spec.HealthExpressions = []v1alpha1.HealthExpression{{Kind: "Secret", Current: "data.x == ''"}}
		}, "spec.healthExpressions[0].current"},
	} {
		t.Run(name, func(t *testing.T) {
			app := newApplication(ns)
			tc.change(app)
			err := admin.Create(t.Context(), app)
			require.True(t, apierrors.IsInvalid(err), "%s: %v", tc.reason, err)
			assert.ErrorContains(t, err, tc.field)
		})
	}
}

// A32: what may not be created may not become so either.
func TestApplication_isRefusedOnUpdateToo(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	app := newApplication(c.Namespace(t))
	require.NoError(t, admin.Create(t.Context(), app))
	for field, change := range map[string]func(*v1alpha1.Application){
		"spec.dependencies[0]": func(a *v1alpha1.Application) { a.Spec.Dependencies = []string{a.Name} },
		"spec.healthCheck.template.spec.containers": func(a *v1alpha1.Application) {
			a.Spec.HealthCheck = healthCheck(`{"spec": {"containers": [{"name": "a", "image": "i"}]}}`)
		},
		"spec.healthCheck.template.spec.restartPolicy": func(a *v1alpha1.Application) {
			a.Spec.HealthCheck = healthCheck(`{"spec": {"restartPolicy": "Sometimes", "containers": [{"name": "a", "image": "i", "readinessProbe": {"exec": {"command": ["true"]}}}]}}`)
		},
	} {
		edited := app.DeepCopy()
		change(edited)
		err := admin.Update(t.Context(), edited)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		assert.ErrorContains(t, err, field)
	}
}

// A30, A31, C10: a valid health check leaves nothing behind.
func TestApplication_healthCheckIsTriedOut(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	ns := c.Namespace(t)
	app := newApplication(ns)
	app.Spec.HealthCheck = healthCheck(validPod)
	require.NoError(t, admin.Create(t.Context(), app))
	assert.Empty(t, warned.take())
	pods := &corev1.PodList{}
	require.NoError(t, admin.List(t.Context(), pods))
	assert.Empty(t, pods.Items)
}

// C50: what is no fault of the Pod is a warning.
func TestApplication_healthCheckBeyondAdmission(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	ns := namespaceOf("restricted-" + c.Namespace(t))
	ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	require.NoError(t, admin.Create(t.Context(), ns))
	app := newApplication(ns.Name)
	app.Spec.HealthCheck = healthCheck(validPod)
	require.NoError(t, admin.Create(t.Context(), app), "Pod Security shows as a condition")
	require.Len(t, warned.take(), 1)
}

// A43: a kind may come later.
func TestApplication_warnsOfKinds(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	app := newApplication(c.Namespace(t))
	app.Spec.Components = []v1alpha1.ApplicationComponent{{Group: "example.com", Kind: "Widget"}, {Kind: "Node"}, {Kind: "Service"}}
	require.NoError(t, admin.Create(t.Context(), app))
	got := warned.take()
	require.Len(t, got, 2)
	assert.Contains(t, got[0], "Widget.example.com is not known")
	assert.Contains(t, got[1], "Node is cluster-scoped")
}

// C50: kinds that may come later are few: each takes permissions of its own to be asked for.
func TestApplication_limitsKindsToCome(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	app := newApplication(c.Namespace(t))
	for i := range 21 {
		app.Spec.Components = append(app.Spec.Components, v1alpha1.ApplicationComponent{Group: fmt.Sprintf("g%d.example.com", i), Kind: "Widget"})
	}
	err := admin.Create(t.Context(), app)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "21 groups have kinds that are not known to the cluster: create what defines them first; at most 20 may be unknown")
	app.Spec.Components[20].Group = "g0.example.com"
	app.Spec.Components[20].Kind = "Gadget"
	require.NoError(t, admin.Create(t.Context(), app), "of one group any number")
}

// A9: which Applications need each other in a cycle is reported when the cycle closes, and when it is changed.
func TestApplication_warnsOfCycles(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	ns := c.Namespace(t)
	depending := func(name string, on ...string) *v1alpha1.Application {
		app := newApplication(ns)
		app.Name, app.Spec.Dependencies = name, on
		return app
	}
	blog := depending("blog", "db")
	require.NoError(t, admin.Create(t.Context(), blog))
	require.NoError(t, admin.Create(t.Context(), depending("cache", "blog")))
	assert.Empty(t, warned.take(), "db is yet to come")
	require.Eventually(t, func() bool {
		require.NoError(t, admin.Create(t.Context(), depending("db", "cache"), client.DryRunAll))
		return len(warned.take()) > 0
	}, patience, often, "from memory, which learns of Applications a moment later")
	require.NoError(t, admin.Create(t.Context(), depending("db", "cache")), "it is no error")
	assert.Equal(t, []string{"spec.dependencies form a cycle: db -> cache -> blog -> db"}, warned.take())
	blog.Labels = map[string]string{"a": "b"}
	require.NoError(t, admin.Update(t.Context(), blog))
	assert.Empty(t, warned.take(), "it has been told")
}
