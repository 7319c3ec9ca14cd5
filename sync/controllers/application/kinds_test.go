package application_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/test/hub"
)

const widgetGroup = "kinds.example.com"

// define installs the kind Widget of a group of its own.
func (w *world) define() *unstructured.Unstructured {
	w.T.Helper()
	schemaOf := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: ptr.To(true),
	}}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + widgetGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgetGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1beta1", Served: true, Schema: schemaOf}, {Name: "v1", Served: true, Storage: true, Schema: schemaOf},
			},
		},
	}
	object := toUnstructured(w.T, crd, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	w.Create(object)
	return object
}

func widget(meta metav1.ObjectMeta) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: widgetGroup, Version: "v1", Kind: "Widget"})
	o.SetName(meta.Name)
	o.SetLabels(meta.Labels)
	o.SetAnnotations(meta.Annotations)
	return o
}

func widgetNamed(name string) v1alpha1.ApplicationComponent {
	return v1alpha1.ApplicationComponent{Group: widgetGroup, Kind: "Widget", Name: name}
}

// createSoon creates an object of a kind that was defined a moment ago.
func (w *world) createSoon(o client.Object) {
	w.T.Helper()
	o.SetNamespace(w.Namespace)
	require.True(w.T, w.Eventually(func() bool { return w.Client.Create(w.T.Context(), o) == nil }))
	w.T.Cleanup(func() { _ = w.Client.Delete(w.T.Context(), o) })
}

// A43, A63, A64: a kind that is defined after the Application is noticed, and so is one that
// goes; other components are held up by neither.
func TestKinds_arriveAndVanish(t *testing.T) {
	w := newWorld(t)
	app := shop(widgetNamed("one"), named("ConfigMap", "settings"))
	w.Create(app)
	w.Create(configMap(member("settings")))
	w.awaitComponents(app, "1/2")
	assert.Equal(t, "the cluster does not serve kind Widget.kinds.example.com: install what defines it", component(app, "Widget", "one").Message)

	definition := w.define()
	hub.Await(w.World, app, "the kind is not noticed", func(app *v1alpha1.Application) bool {
		return component(app, "Widget", "one").Message == "does not exist"
	})
	one := widget(member("one"))
	w.createSoon(one)
	w.awaitComponents(app, "2/2")
	w.awaitOwned(one, app, true)
	hub.Change(w.World, one, func(o *unstructured.Unstructured) {
		o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "out of paint"}}}
	})
	hub.Await(w.World, app, "health is not followed", func(app *v1alpha1.Application) bool {
		c := component(app, "Widget", "one")
		return c.Health == string(health.InProgress) && c.Message == "out of paint"
	})

	w.delete(definition)
	hub.Await(w.World, app, "that the kind is gone is not noticed", func(app *v1alpha1.Application) bool {
		c := component(app, "Widget", "one")
		return !c.Installed && c.Message == "the cluster does not serve kind Widget.kinds.example.com: install what defines it"
	})
	w.define()
	again := widget(member("one"))
	w.createSoon(again)
	w.awaitComponents(app, "2/2")
	w.awaitOwned(again, app, true)
}

// C35, C44: what the agent may not do is said by the Applications that it concerns, with the
// right that is missing, and holds up no other; once it is granted, it is used.
func TestKinds_forbidden(t *testing.T) {
	w := newAgentWorld(t, right("", "configmaps"))
	w.Create(configMap(member("settings")))
	w.Create(secret(member("password")))
	app := shop(named("ConfigMap", "settings"), named("Secret", "password"))
	w.Create(app)
	message := hub.AwaitReason(w.World, app, v1alpha1.ForbiddenReason)
	assert.Contains(t, message, "cannot list and watch secrets")
	assert.Contains(t, message, `User "`+w.agent()+`" cannot list resource "secrets" in API group "" at the cluster scope`)
	assert.Equal(t, v1alpha1.ForbiddenReason, reasonOf(app, v1alpha1.StalledCondition))
	assert.Equal(t, v1alpha1.ForbiddenReason, reasonOf(app, v1alpha1.ComponentsReadyCondition))
	c := component(app, "ConfigMap", "settings")
	assert.True(t, c.Installed && c.Health == string(health.Current), "%+v", c)
	assert.Equal(t, string(health.Unknown), component(app, "Secret", "password").Health)
	other := depending("other")
	w.Create(other)
	hub.AwaitReady(w.World, other)

	w.grant("waybill-agent-components", right("", "configmaps"), right("", "secrets"))
	hub.AwaitReady(w.World, app)
}

// A right to patch that is missing is said too.
func TestKinds_notPatchable(t *testing.T) {
	readOnly := right("", "configmaps")
	readOnly.Verbs = []string{"get", "list", "watch"}
	w := newAgentWorld(t, readOnly)
	settings := configMap(member("settings"))
	w.Create(settings)
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	message := hub.AwaitReason(w.World, app, v1alpha1.ForbiddenReason)
	assert.Contains(t, message, `cannot patch resource "configmaps"`)
	assert.Equal(t, metav1.ConditionTrue, statusOf(app, v1alpha1.ComponentsReadyCondition), "it is there, and healthy")

	w.grant("waybill-agent-components", right("", "configmaps"))
	w.awaitOwned(settings, app, true)
	hub.AwaitReady(w.World, app)
}

// C7, C42: an agent that starts without the right to see what its Application owns does not forget
// it: listed no more, it loses its reference once the right is there again.
func TestKinds_forbiddenSinceARestart(t *testing.T) {
	w, stop := newStoppableAgentWorld(t, right("", "configmaps"), right("", "secrets"))
	w.Create(configMap(member("settings")))
	password := secret(member("password"))
	w.Create(password)
	app := shop(named("ConfigMap", "settings"), named("Secret", "password"))
	w.Create(app)
	hub.AwaitReady(w.World, app)
	stop()
	w.grant("waybill-agent-components", right("", "configmaps"))
	w.Cluster.AwaitRevoked(t, w.agent(), "", right("", "secrets"))
	w.startAgent()
	hub.AwaitReason(w.World, app, v1alpha1.ForbiddenReason)
	c := component(app, "Secret", "password")
	assert.True(t, c.Installed && c.Owned && c.Health == string(health.Unknown), "%+v", c)
	assert.Equal(t, []string{"ConfigMap/settings", "Secret/password"}, app.Status.Installed)

	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Components = app.Spec.Components[:1] })
	hub.Await(w.World, app, "it is still a component", func(app *v1alpha1.Application) bool {
		return app.Status.ObservedGeneration == app.Generation && !component(app, "Secret", "password").Installed
	})
	assert.True(t, component(app, "Secret", "password").Owned, "%+v", app.Status.Components)

	w.grant("waybill-agent-components", right("", "configmaps"), right("", "secrets"))
	w.awaitOwned(password, app, false)
	hub.AwaitReady(w.World, app)
	assert.Equal(t, []string{"ConfigMap/settings"}, app.Status.Installed)
}
