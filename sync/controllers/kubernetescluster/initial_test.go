package kubernetescluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

const list = v1alpha1.InitialInstallationsAnnotation

// newProvider is newHub for tests of what clusters are provided with: that would keep the clusters of other tests.
func newProvider(t *testing.T) *hub {
	t.Helper()
	var h *hub
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, c := range []client.Client{h, newClient(t, userCluster(t).RESTConfig())} {
			all := &v1alpha1.ApplicationInstallationList{}
			require.NoError(t, c.List(ctx, all))
			for i := range all.Items {
				if strings.HasPrefix(all.Items[i].Namespace, h.ns) {
					require.NoError(t, client.IgnoreNotFound(c.Delete(ctx, &all.Items[i])))
				}
			}
		}
	})
	h = newHub(t, options{})
	return h
}

// define creates a definition that is offered to the clusters of the test alone. It goes with the test.
func (h *hub) define(name string, change ...func(*v1alpha1.ApplicationDefinition)) *v1alpha1.ApplicationDefinition {
	h.t.Helper()
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: h.named(name)}}
	d.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: h.ns}}
	for _, v := range []string{"1.0.0", "1.1.0"} {
		d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{Version: v, Template: &v1alpha1.ApplicationTemplate{
			Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: "https://charts.example.com", ChartName: "web", ChartVersion: v}},
		}})
	}
	for _, f := range change {
		f(d)
	}
	require.NoError(h.t, h.Create(h.t.Context(), d))
	h.t.Cleanup(func() { _ = h.Delete(context.WithoutCancel(h.t.Context()), d) })
	return d
}

// named makes the name of a definition one that no other test uses.
func (h *hub) named(name string) string { return name + "-" + h.ns }

// entry is one entry of a list of installations.
func (h *hub) entry(ns, name, definition, version string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"namespace": ns, "name": name},
		"spec":     map[string]any{"applicationRef": map[string]any{"name": h.named(definition), "version": version}},
	}
}

func asJSON(t *testing.T, entries ...map[string]any) string {
	t.Helper()
	text, err := json.Marshal(entries)
	require.NoError(t, err)
	return string(text)
}

// asks has a KubernetesCluster ask for installations from the start.
func asks(text string) func(*v1alpha1.KubernetesCluster) {
	return func(kc *v1alpha1.KubernetesCluster) { kc.Annotations = map[string]string{list: text} }
}

func initial(kc *v1alpha1.KubernetesCluster) metav1.Condition {
	return condition(kc, v1alpha1.InitialInstallationsCreatedCondition)
}

func created(kc *v1alpha1.KubernetesCluster) bool {
	return initial(kc).Status == metav1.ConditionTrue && kc.Annotations[list] == ""
}

func initialReason(reason string) func(*v1alpha1.KubernetesCluster) bool {
	return func(kc *v1alpha1.KubernetesCluster) bool { return initial(kc).Reason == reason }
}

// installation returns an installation of the user cluster; nil if there is none.
func installation(t *testing.T, c client.Client, ns, name string) *v1alpha1.ApplicationInstallation {
	t.Helper()
	inst := &v1alpha1.ApplicationInstallation{}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, inst)
	require.NoError(t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return inst
}

// K2, K61, K62, K63, K64: what a KubernetesCluster asks for is created once its cluster can be used, and is asked for no
// longer then. One bad entry of ten holds up no other, is named, and is tried again when its definition appears.
func TestInitial_createsInstallations(t *testing.T) {
	h := newProvider(t)
	h.define("web")
	gate, kubeconfig := gated(t, userCluster(t))
	gate.Shut()
	var entries []map[string]any
	for i := range 9 {
		entries = append(entries, h.entry(fmt.Sprintf("%s-%d", h.ns, i%2), fmt.Sprintf("web-%d", i), "web", "1.0.0"))
	}
	bad := h.entry(h.ns+"-0", "bad", "later", "1.0.0")
	entries = append(entries[:4], append([]map[string]any{bad}, entries[4:]...)...)
	h.add("eu-1", kubeconfig, asks(asJSON(t, entries...)))
	kc := h.until("eu-1", initialReason(v1alpha1.ClusterNotReadyReason), "the cluster does not answer")
	assert.Equal(t, metav1.ConditionFalse, initial(kc).Status)

	require.NoError(t, gate.Open())
	kc = h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool {
		return initial(kc).Reason == v1alpha1.InstallationsNotCreatedReason && kc.Annotations[list] == asJSON(t, bad)
	}, "nine of ten are created, and one is left")
	assert.Equal(t, fmt.Sprintf("1 installation is not created yet: %s-0/bad: there is no ApplicationDefinition %q", h.ns, h.named("later")), initial(kc).Message)
	assert.True(t, isReady(h.until("eu-1", isReady, "the cluster itself is ready")))
	user := newClient(t, userCluster(t).RESTConfig())
	for i := range 9 {
		inst := installation(t, user, fmt.Sprintf("%s-%d", h.ns, i%2), fmt.Sprintf("web-%d", i))
		require.NotNil(t, inst, "web-%d", i)
		assert.Equal(t, v1alpha1.ApplicationReference{Name: h.named("web"), Version: "1.0.0"}, inst.Spec.ApplicationRef)
	}
	assert.Nil(t, installation(t, user, h.ns+"-0", "bad"))

	h.define("later")
	kc = h.until("eu-1", created, "the definition has appeared")
	assert.NotContains(t, kc.Annotations, list)
	assert.NotNil(t, installation(t, user, h.ns+"-0", "bad"))
}

// K63, K64: whatever a process had done when it ended, the next one creates what is left, and nothing twice.
func TestInitial_goesOnAfterARestart(t *testing.T) {
	h := newProvider(t)
	h.define("web")
	user := newClient(t, userCluster(t).RESTConfig())
	require.NoError(t, user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.ns}}))
	kubeconfig := userCluster(t).Kubeconfig()
	h.add("eu-1", kubeconfig)
	h.until("eu-1", isReady, "the CRDs are there")
	h.stop()
	install(t, user, h.ns, "made", func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.ApplicationRef.Name, i.Spec.ValuesBlock = h.named("web"), "edited: true"
	})
	install(t, user, h.ns, "foreign")
	h.change("eu-1", asks(asJSON(t, h.entry(h.ns, "made", "web", "1.0.0"), h.entry(h.ns, "left", "web", "1.0.0"), h.entry(h.ns, "foreign", "web", ""))))
	h.restart()
	kc := h.until("eu-1", initialReason(v1alpha1.InstallationsNotCreatedReason), "a name is taken, and a version is missing")
	assert.Contains(t, initial(kc).Message, `foreign: an installation of that name exists already, of ApplicationDefinition "web"`)
	assert.Equal(t, "edited: true", installation(t, user, h.ns, "made").Spec.ValuesBlock, "what exists is left as it is")
	require.NotNil(t, installation(t, user, h.ns, "left"))

	require.NoError(t, user.Delete(t.Context(), installation(t, user, h.ns, "left")))
	require.NoError(t, user.Delete(t.Context(), installation(t, user, h.ns, "foreign")))
	h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool {
		return initial(kc).Message == fmt.Sprintf("1 installation is not created yet: %s/foreign: no version is named, and ApplicationDefinition %q has no defaultVersion", h.ns, h.named("web"))
	}, "the name is free")
	h.restart()
	h.change("eu-1", asks(asJSON(t, h.entry(h.ns, "foreign", "web", "1.1.0"))))
	h.until("eu-1", created, "the entry was corrected")
	assert.Nil(t, installation(t, user, h.ns, "left"), "what was created is asked for no longer, and stays removed")
}

// K2, K65: a list that is kept once is carried out once for each KubernetesCluster that names it. Only a ConfigMap
// that is protected counts.
func TestInitial_takesAListFromAConfigMap(t *testing.T) {
	h := newProvider(t)
	h.define("web")
	template := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "template"},
		Data:       map[string]string{"installations.yaml": asJSON(t, h.entry(h.ns, "first", "web", "1.0.0"), h.entry(h.ns, "bad", "later", "1.0.0"))},
	}
	from := func(kc *v1alpha1.KubernetesCluster) {
		kc.Spec.InstallationsFrom = &v1alpha1.InstallationsReference{Name: "template"}
	}
	says := func(text string) func(*v1alpha1.KubernetesCluster) bool {
		return func(kc *v1alpha1.KubernetesCluster) bool {
			return initialReason(v1alpha1.InvalidInstallationsReason)(kc) && assert.ObjectsAreEqual(text, initial(kc).Message)
		}
	}
	h.add("eu-1", userCluster(t).Kubeconfig(), from)
	h.until("eu-1", says(fmt.Sprintf(`spec.installationsFrom: there is no ConfigMap "template" in namespace %q`, h.ns)), "it does not exist")
	require.NoError(t, h.Create(t.Context(), template))
	h.until("eu-1", says(`spec.installationsFrom: ConfigMap "template" lacks the label apps.waybill.dev/values: protected, so others than those who may install could change it`), "any user may edit it")
	template.Labels = map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}
	require.NoError(t, h.Update(t.Context(), template))

	kc := h.until("eu-1", initialReason(v1alpha1.InstallationsNotCreatedReason), "one cannot be created")
	assert.Equal(t, &v1alpha1.TakenInstallations{Name: "template", Key: "installations.yaml", Pending: []string{h.ns + "/bad"}}, kc.Status.InstallationsTaken)
	user := newClient(t, userCluster(t).RESTConfig())
	require.NoError(t, user.Delete(t.Context(), installation(t, user, h.ns, "first")))
	h.restart()
	template.Data["installations.yaml"] = asJSON(t, h.entry(h.ns, "first", "web", "1.0.0"), h.entry(h.ns, "bad", "web", "1.0.0"), h.entry(h.ns, "new", "web", "1.0.0"))
	require.NoError(t, h.Update(t.Context(), template))
	kc = h.until("eu-1", created, "the entry was corrected")
	assert.Empty(t, kc.Status.InstallationsTaken.Pending)
	assert.NotNil(t, installation(t, user, h.ns, "bad"))
	assert.Nil(t, installation(t, user, h.ns, "first"), "it was created once")
	assert.Nil(t, installation(t, user, h.ns, "new"), "it was not in the list when that was taken")
}
