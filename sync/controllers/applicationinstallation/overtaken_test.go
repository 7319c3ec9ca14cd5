package applicationinstallation_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// held is a webhook that has to let a request pass, and does when it is released. asked gets a value when
// it is asked.
type held struct {
	asked   chan struct{}
	release func()
}

// admission registers the webhook for new ConfigMaps of a name in the test's namespace, and returns when
// it is in force.
func (w *world) admission(name string) held {
	w.T.Helper()
	return w.hold(name, admissionregistrationv1.Create, corev1.SchemeGroupVersion.WithResource("configmaps"), func() error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
		return client.IgnoreAlreadyExists(w.Client.Create(w.T.Context(), probe, client.DryRunAll))
	})
}

// hold registers the webhook for an operation on the objects of a name in the test's namespace, and
// returns when it is in force: when it gets the dry run that probe makes.
func (w *world) hold(name string, operation admissionregistrationv1.OperationType, resource schema.GroupVersionResource, probe func() error) held {
	w.T.Helper()
	h, released, probed := held{asked: make(chan struct{}, 1)}, make(chan struct{}), &atomic.Bool{}
	h.release = sync.OnceFunc(func() { close(released) })
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if !assert.NoError(w.T, json.NewDecoder(r.Body).Decode(review)) {
			return
		}
		if ptr.Deref(review.Request.DryRun, false) {
			probed.Store(true)
		} else {
			select {
			case h.asked <- struct{}{}:
			default:
			}
			<-released
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		assert.NoError(w.T, json.NewEncoder(rw).Encode(review))
	}))
	w.T.Cleanup(server.Close)
	w.T.Cleanup(h.release)
	w.Create(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: objectMeta(w.Namespace + "-" + resource.Resource + "-" + name),
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "held.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{operation},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version}, Resources: []string{resource.Resource},
				},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace}},
			MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "name", Expression: "(object != null ? object : oldObject).metadata.name == '" + name + "'"}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			TimeoutSeconds:          ptr.To[int32](30),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	})
	require.True(w.T, w.Eventually(func() bool {
		require.NoError(w.T, probe())
		return probed.Load()
	}), "the webhook is not in force")
	return h
}

// versioned defines two versions, each a ServiceAccount that is called as the version is and a
// ConfigMap of that name.
func (w *world) versioned() {
	w.T.Helper()
	files := map[string]string{}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		for _, kind := range []string{"ServiceAccount", "ConfigMap"} {
			files[version+"/"+kind+".yaml"] = "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: v" + version + "}\n"
		}
	}
	w.kustomizations(files)
}

// slowKustomization installs the first of these versions, whose ConfigMap is held.
func (w *world) slowKustomization() (*v1alpha1.ApplicationInstallation, held) {
	w.T.Helper()
	w.versioned()
	held := w.admission("v1.0.0")
	inst := w.install(nil)
	w.AwaitThere(&corev1.ServiceAccount{}, "v1.0.0")
	env.Receive(w.T, held.asked, "the ConfigMap is not made")
	return inst, held
}

// K53, C34, C41: what the first apply makes is taken away also by who deletes the installation
// while that runs, and so never learns how it ended.
func TestInstallation_isDeletedDuringItsFirstApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst, held := w.slowKustomization()
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitSeen(shared.process, inst)
	held.release()

	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&corev1.ServiceAccount{}, "v1.0.0"))
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "v1.0.0"))
	assert.False(t, w.Exists(&v1alpha1.Application{}, "web"))
}

// hooked is a ConfigMap whose hooks run after the install and before the uninstall.
const hooked = `
apiVersion: v1
kind: ConfigMap
metadata: {name: greeting, annotations: {helm.sh/hook: post-install}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: farewell, annotations: {helm.sh/hook: pre-delete}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
`

// C41: the status knows the release while it is uninstalled, also if the install ended only after the
// deletion: a process that is killed in that time leaves to the next one whose hooks to run.
func TestInstallation_isDeletedDuringItsFirstHelmInstall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.repo.Push(charts+"web", func(c *chart.Chart) {
		c.Metadata.Version, c.Schema = "0.9.0-deleted", nil
		c.Templates = []*chart.File{{Name: "templates/all.yaml", Data: []byte(hooked)}}
	})
	require.NoError(t, err)
	w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
		d.Versions[0].Template.Source = w.webSource("0.9.0-deleted")
	})
	installing, uninstalling := w.admission("greeting"), w.admission("farewell")
	inst := w.install(nil)
	env.Receive(t, installing.asked, "the hook of the install does not run")
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitSeen(shared.process, inst)
	installing.release()
	env.Receive(t, uninstalling.asked, "the hook of the uninstall does not run")
	hub.Await(w.World, inst, "the release is not told", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Release != nil })
	uninstalling.release()
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
}

// What is wanted when an apply ends counts, not what was wanted when it began.
func TestInstallation_goesBackToItsVersionDuringAnApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.versioned()
	inst := hub.AwaitReady(w.World, w.install(nil))
	held := w.admission("v1.1.0")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	env.Receive(w.T, held.asked, "the ConfigMap is not made")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.0.0" })
	w.AwaitSeen(shared.process, inst)
	held.release()

	hub.AwaitReady(w.World, inst)
	assert.Equal(t, "1.0.0", inst.Status.Application.Version)
	for version, want := range map[string]bool{"v1.0.0": true, "v1.1.0": false} {
		assert.Equal(t, want, w.Exists(&corev1.ServiceAccount{}, version))
		assert.Equal(t, want, w.Exists(&corev1.ConfigMap{}, version))
	}
}

// C41: what an apply makes for a version that is not wanted any more goes with the next one.
func TestInstallation_changesItsVersionDuringItsFirstApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst, held := w.slowKustomization()
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	w.AwaitSeen(shared.process, inst)
	assert.Equal(t, "1.0.0", inst.Status.Application.Version, "the second version waits for the first")
	held.release()

	hub.AwaitReady(w.World, inst)
	for version, want := range map[string]bool{"v1.0.0": false, "v1.1.0": true} {
		assert.Equal(t, want, w.Exists(&corev1.ServiceAccount{}, version))
		assert.Equal(t, want, w.Exists(&corev1.ConfigMap{}, version))
	}
	assert.EqualValues(t, 3, inst.Status.Inventory.Count, "two objects and the Application")
}
