package application_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// A101: every instance of a type has an Application of its own, which selects, reports and
// owns its own.
func TestContract_oneApplicationPerInstance(t *testing.T) {
	w := newWorld(t)
	instance := func(name string) (*v1alpha1.Application, *corev1.ConfigMap) {
		app := shop(named("ConfigMap", ""))
		app.Name, app.Spec.Type = name, "shop"
		app.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop", "instance": name}}
		w.Create(app)
		settings := configMap(metav1.ObjectMeta{Name: "settings-of-" + name, Labels: map[string]string{"app": "shop", "instance": name}})
		w.Create(settings)
		return app, settings
	}
	blue, settings := instance("blue")
	green, others := instance("green")
	w.awaitOwned(settings, blue, true)
	w.awaitOwned(others, green, true)
	w.awaitComponents(blue, "1/1")
	w.awaitComponents(green, "1/1")
	assert.Equal(t, []string{"ConfigMap/settings-of-blue"}, blue.Status.Installed)
	assert.Equal(t, []string{"ConfigMap/settings-of-green"}, green.Status.Installed)
	assert.False(t, refersTo(settings, green.UID) || refersTo(others, blue.UID))

	w.delete(blue)
	w.AwaitGone(&corev1.ConfigMap{}, settings.Name)
	assert.True(t, w.Exists(others, others.Name))
}

// A98: what describes an application stands in one object: neither its components nor what the
// controller makes have a copy.
func TestContract_metadataIsStoredOnce(t *testing.T) {
	const told = "sells things that nobody else sells"
	w := newWorld(t)
	w.Create(configMap(member("settings")))
	app := shop(named("ConfigMap", "settings"))
	app.Spec.Description, app.Spec.HealthCheck = told, healthCheck("check")
	w.Create(app)
	hub.AwaitReady(w.World, app)

	for _, list := range []client.ObjectList{
		&v1alpha1.ApplicationList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.PodList{}, &eventsv1.EventList{},
	} {
		require.NoError(t, w.Client.List(t.Context(), list, inNamespace(w)))
		content, err := json.Marshal(list)
		require.NoError(t, err)
		want := 0
		if _, ok := list.(*v1alpha1.ApplicationList); ok {
			want = 1
		}
		assert.Equal(t, want, strings.Count(string(content), told), "%T", list)
	}
}

// A26: metrics of applications are not ours. The agent may not read any, nor reach the Pods that
// have them; and of its own series none says more of an Application than its status does.
func TestContract_noMetricsOfApplications(t *testing.T) {
	for _, rule := range agentRights(t) {
		for _, group := range rule.APIGroups {
			assert.False(t, group == "*" || strings.HasSuffix(group, "metrics.k8s.io"), "%+v", rule)
		}
		for _, resource := range rule.Resources {
			assert.NotContains(t, []string{"*", "pods/proxy", "services/proxy", "pods/log", "pods/exec"}, resource)
		}
	}

	w := newWorld(t)
	w.Create(configMap(member("settings")))
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	hub.AwaitReady(w.World, app)
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	var about []string
	for _, family := range families {
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if label.GetValue() == w.Namespace {
					about = append(about, family.GetName())
				}
			}
		}
	}
	assert.Subset(t, []string{"waybill_application_ready"}, slices.Compact(about))
}
