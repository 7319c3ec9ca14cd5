package webhooks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/webhooks"
	"waybill.dev/waybill/webhooks/registration"
)

// rulesOf are the entries for injection that a configuration has, as "resources in namespaces".
func rulesOf(mutating *admissionregistrationv1.MutatingWebhookConfiguration) []string {
	var rules []string
	for _, w := range mutating.Webhooks {
		if !strings.HasPrefix(w.Name, "inject-") {
			continue
		}
		var resources []string
		for _, r := range w.Rules {
			for _, resource := range r.Resources {
				resources = append(resources, strings.TrimSuffix(resource+"."+r.APIGroups[0], "."))
			}
		}
		rules = append(rules, fmt.Sprint(resources, " in ", w.NamespaceSelector.MatchExpressions[0].Values))
	}
	slices.Sort(rules)
	return rules
}

func injectionRules(t *testing.T, admin client.Client) []string {
	t.Helper()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Name: registration.ConfigurationName}, mutating))
	return rulesOf(mutating)
}

func awaitRules(t *testing.T, admin client.Client, want ...string) {
	t.Helper()
	slices.Sort(want)
	var got []string
	require.Eventually(t, func() bool { got = injectionRules(t, admin); return slices.Equal(got, want) }, patience, often,
		"wanted: %v", want)
}

func namespaces(t *testing.T, c *cluster, n int) []string {
	t.Helper()
	var names []string
	for range n {
		names = append(names, c.Namespace(t))
	}
	slices.Sort(names)
	return names
}

// injecting is a server of its own for this test, on a cluster without Applications.
func injecting(t *testing.T, changes ...func(*webhooks.Options)) (*cluster, client.Client) {
	t.Helper()
	c := lifecycle(t)
	serve(t, c.RESTConfig(), func(o *webhooks.Options) {
		for _, change := range append(changes, unregister) {
			change(o)
		}
	}).awaitReady(t)
	admin, _ := c.admin(t)
	t.Cleanup(func() {
		apps := &v1alpha1.ApplicationList{}
		require.NoError(t, admin.List(afterwards(t), apps))
		for i := range apps.Items {
			_ = admin.Delete(afterwards(t), &apps.Items[i])
		}
	})
	return c, admin
}

// C32, C51: what is registered is what Applications list, where they are, and no more.
func TestInjectionRules_followApplications(t *testing.T) {
	c, admin := injecting(t)
	ns := namespaces(t, c, 3)
	assert.Empty(t, injectionRules(t, admin))

	blog, shop, other := selecting(ns[0], "blog", "ConfigMap", "Deployment.apps"), selecting(ns[1], "shop", "Deployment.apps", "ConfigMap"), selecting(ns[2], "other", "Service")
	require.NoError(t, admin.Create(t.Context(), blog))
	awaitRules(t, admin, fmt.Sprintf("[configmaps deployments.apps] in [%s]", ns[0]))
	require.NoError(t, admin.Create(t.Context(), shop))
	require.NoError(t, admin.Create(t.Context(), other))
	awaitRules(t, admin, fmt.Sprintf("[configmaps deployments.apps] in [%s %s]", ns[0], ns[1]), fmt.Sprintf("[services] in [%s]", ns[2]))

	shop.Spec.Components = append(shop.Spec.Components, v1alpha1.ApplicationComponent{Kind: "Node"}, v1alpha1.ApplicationComponent{Kind: "Service", Name: "web"})
	require.NoError(t, admin.Update(t.Context(), shop))
	awaitRules(t, admin, fmt.Sprintf("[configmaps deployments.apps] in [%s]", ns[0]),
		fmt.Sprintf("[configmaps services deployments.apps] in [%s]", ns[1]), fmt.Sprintf("[services] in [%s]", ns[2]))

	for _, app := range []*v1alpha1.Application{blog, shop} {
		require.NoError(t, admin.Delete(t.Context(), app))
	}
	awaitRules(t, admin, fmt.Sprintf("[services] in [%s]", ns[2]))
	require.NoError(t, admin.Delete(t.Context(), other))
	awaitRules(t, admin)
}

// C32, C49, C51: every default is written out, no request waits long, and only objects are sent.
func TestInjectionRules_ignoreFailures(t *testing.T) {
	c, admin := injecting(t, func(o *webhooks.Options) { o.Registration.InjectionTimeout = 0 }) // the default
	ns := c.Namespace(t)
	require.NoError(t, admin.Create(t.Context(), selecting(ns, "blog", "ConfigMap")))
	require.NoError(t, admin.Create(t.Context(), selecting(v1alpha1.DefaultSystemNamespace, "waybill", "ConfigMap")))
	awaitRules(t, admin, fmt.Sprintf("[configmaps] in [%s]", ns)) // nothing where we run ourselves
	mutating, _ := configurations(t, admin)
	at := slices.IndexFunc(mutating.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return strings.HasPrefix(w.Name, "inject-") })
	w := mutating.Webhooks[at]
	assert.Equal(t, admissionregistrationv1.Ignore, *w.FailurePolicy)
	assert.Equal(t, admissionregistrationv1.NamespacedScope, *w.Rules[0].Scope)
	assert.Equal(t, admissionregistrationv1.SideEffectClassNone, *w.SideEffects)
	assert.LessOrEqual(t, *w.TimeoutSeconds, int32(2))
	assert.NotContains(t, w.Rules[0].Operations, admissionregistrationv1.Delete)
	assert.Len(t, w.MatchConditions, 2)
}

// C51: many changes are few writes, and what ends as it was is none.
func TestInjectionRules_areStableUnderChurn(t *testing.T) {
	c := lifecycle(t)
	admin, _ := c.admin(t)
	const user = "churning-webhook"
	config, err := c.AddUser(user, "system:masters")
	require.NoError(t, err)
	s := serve(t, config, unregister)
	s.awaitReady(t)
	ns := namespaces(t, c, 20)
	require.NoError(t, admin.Create(t.Context(), selecting(ns[0], "stays", "ConfigMap")))
	awaitRules(t, admin, fmt.Sprintf("[configmaps] in [%s]", ns[0]))

	start := time.Now()
	writes := c.writesWhile(t, user, func() {
		for range 3 {
			for _, n := range ns {
				app := selecting(n, "comes-and-goes", "ConfigMap", "Service")
				require.NoError(t, admin.Create(t.Context(), app))
				require.NoError(t, admin.Delete(t.Context(), app))
			}
		}
		// One watch shows all of them in order: who has seen the last has seen the others.
		last := selecting(ns[19], "last", "Secret")
		require.NoError(t, admin.Create(t.Context(), last))
		awaitRules(t, admin, fmt.Sprintf("[configmaps] in [%s]", ns[0]), fmt.Sprintf("[secrets] in [%s]", ns[19]))
		require.NoError(t, admin.Delete(t.Context(), last))
		awaitRules(t, admin, fmt.Sprintf("[configmaps] in [%s]", ns[0]))
	})
	assert.LessOrEqual(t, len(writes), 1+int(time.Since(start)/(400*time.Millisecond)), "120 changes: %v", writes)

	idle := c.writesWhile(t, user, func() {
		app := selecting(ns[0], "another", "ConfigMap")
		app.Spec.Dependencies = []string{"stays"}
		require.NoError(t, admin.Create(t.Context(), app))
		awaitMarks(t, admin, newConfigMap(ns[0], "probe", map[string]string{"app": "another"}, nil), `"another" "another" "another"`)
		require.NoError(t, admin.Delete(t.Context(), app))
	})
	assert.Empty(t, idle, "the same kinds in the same namespace")
	require.NoError(t, admin.Delete(t.Context(), selecting(ns[0], "stays")))
}

func widgets() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
}

// A43, A63, C51: kinds come and go after the Applications that list them.
func TestInjectionRules_followKinds(t *testing.T) {
	c, admin := injecting(t)
	ns := c.Namespace(t)
	require.NoError(t, apiextensionsv1.AddToScheme(admin.Scheme()))
	require.NoError(t, admin.Create(t.Context(), selecting(ns, "blog", "ConfigMap", "Widget.example.com")))
	without, with := fmt.Sprintf("[configmaps] in [%s]", ns), fmt.Sprintf("[configmaps widgets.example.com] in [%s]", ns)
	awaitRules(t, admin, without)
	for range 2 {
		require.NoError(t, admin.Create(t.Context(), widgets()))
		awaitRules(t, admin, with)
		require.NoError(t, admin.Delete(t.Context(), widgets()))
		awaitRules(t, admin, without)
	}
	require.NoError(t, admin.Create(t.Context(), widgets()))
	t.Cleanup(func() { _ = admin.Delete(afterwards(t), widgets()) })
	require.NoError(t, admin.Delete(t.Context(), selecting(ns, "blog")))
	require.NoError(t, admin.Create(t.Context(), selecting(ns, "blog", "Widget.example.com")))
	awaitRules(t, admin, fmt.Sprintf("[widgets.example.com] in [%s]", ns))
}

// C51: the next holder of the Lease goes on with what is registered; at no moment is it less.
func TestInjectionRules_surviveAHandOver(t *testing.T) {
	c := lifecycle(t)
	admin, _ := c.admin(t)
	first := serve(t, c.RESTConfig(), func(o *webhooks.Options) { o.Registration.Drain = patience })
	first.awaitReady(t)
	ns := c.Namespace(t)
	app := selecting(ns, "blog", "ConfigMap")
	applied(t, admin, app)

	looks := watch(t.Context(), func(ctx context.Context) error {
		mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := admin.Get(ctx, client.ObjectKey{Name: registration.ConfigurationName}, mutating); err != nil {
			return err
		}
		if rules := rulesOf(mutating); len(rules) != 1 {
			return fmt.Errorf("registered is %v", rules)
		}
		return nil
	})
	second := serve(t, c.RESTConfig(), unregister)
	first.end(t)
	second.awaitReady(t)
	awaitMarks(t, admin, newConfigMap(ns, "probe", map[string]string{"app": "blog"}, nil), ofBlog)
	looks.assertNone(t, "looks while one process hands over to another")
	mutating, _ := configurations(t, admin)
	for _, w := range mutating.Webhooks {
		assert.Contains(t, *w.ClientConfig.URL, second.url)
	}
}

// C32, P2: no user is kept from writing when no server is there to answer.
func TestInjection_thatIsGone(t *testing.T) {
	c := lifecycle(t)
	admin, _ := c.admin(t)
	s := serve(t, c.RESTConfig(), nil)
	s.awaitReady(t)
	t.Cleanup(func() { withdraw(t, admin) })
	ns := c.Namespace(t)
	app := selecting(ns, "blog", "ConfigMap")
	applied(t, admin, app)
	s.end(t)
	require.Eventually(t, func() bool {
		obj := newConfigMap(ns, "probe", map[string]string{"app": "blog"}, nil)
		require.NoError(t, admin.Create(t.Context(), obj, client.DryRunAll))
		return marks(obj) == ofNobody
	}, patience, often)
	require.NoError(t, admin.Delete(t.Context(), app))
}
