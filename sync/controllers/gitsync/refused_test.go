package gitsync_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// patient makes a process that tries nothing again by itself for as long as a test may take.
func patient(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
	r := newReconciler(mgr, s)
	r.MinBackoff, r.MaxBackoff = time.Hour, time.Hour
	return r.SetupWithManager(ctx, mgr)
}

// refuseUndefined makes admission refuse installations whose definition is not there in that
// version, and returns when that is in force.
func (w *world) refuseUndefined() {
	w.T.Helper()
	w.admission(v1alpha1.Group, v1alpha1.GroupVersion.Version, "applicationinstallations", func(request *admissionv1.AdmissionRequest) bool {
		if request.Operation == admissionv1.Delete {
			return true // it has no object
		}
		wanted, found := &v1alpha1.ApplicationInstallation{}, &v1alpha1.ApplicationDefinition{}
		if !assert.NoError(w.T, json.Unmarshal(request.Object.Raw, wanted)) {
			return false
		}
		err := w.Client.Get(context.Background(), client.ObjectKey{Name: wanted.Spec.ApplicationRef.Name}, found)
		return err == nil && found.GetVersion(wanted.Spec.ApplicationRef.Version) != nil
	})
	require.True(w.T, w.Eventually(func() bool {
		probe := &v1alpha1.ApplicationInstallation{ObjectMeta: named("probe")}
		probe.Namespace, probe.Spec.ApplicationRef.Name = w.Namespace, "nothing"
		err := w.Client.Create(w.T.Context(), probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "denied the request")
	}), "the webhook is not in force")
}

// installation is a manifest.
func (w *world) installation(version string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: ApplicationInstallation\nmetadata: {name: web, namespace: %s}\nspec: {applicationRef: {name: %s, version: %s}}\n",
		v1alpha1.GroupVersion, w.Namespace, w.Namespace, version)
}

func offered(version string) v1alpha1.ApplicationVersion {
	return v1alpha1.ApplicationVersion{Version: version, Template: &v1alpha1.ApplicationTemplate{
		Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: "https://charts.example.com", ChartName: "web", ChartVersion: version}},
	}}
}

// C46: what admission refused for want of a definition is delivered as soon as the definition, or
// the version, is in the cluster: no back-off is waited for.
func TestGitSync_refusedInstallationIsTriedAgainWhenItsDefinitionArrives(t *testing.T) {
	c := env.Start(t, env.Options{Name: "definitions", CRDs: []string{crds}})
	process := hub.Start(t, c, patient)
	t.Cleanup(process.Stop)
	cases := map[string]struct {
		reason string
		change func(*world) func(*v1alpha1.GitSyncSpec)
	}{
		"its own cluster": {"nothing is copied there", func(*world) func(*v1alpha1.GitSyncSpec) { return nil }},
		"a user cluster": {"the copy is written by whoever drives the cluster", func(w *world) func(*v1alpha1.GitSyncSpec) {
			w.Create(&v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: "berlin", Labels: map[string]string{"pool": "berlin"}}})
			config, err := c.AddUser(hub.Identity, "system:masters")
			require.NoError(w.T, err)
			key := types.NamespacedName{Namespace: w.Namespace, Name: "berlin"}
			process.Clusters.Ensure(key, "berlin", config)
			w.T.Cleanup(func() { process.Clusters.Remove(key) })
			return in("pool", "berlin")
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := makeWorld(t, c, process)
			everything := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"applicationinstallations"}, Verbs: []string{"*"}}
			c.AwaitGranted(t, w.User("default"), w.Namespace, everything)
			w.refuseUndefined()
			w.commit(map[string]string{"web.yaml": w.installation("1.0.0")})
			gs := w.sync(tc.change(w))
			hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason)

			definition := &v1alpha1.ApplicationDefinition{ObjectMeta: named(w.Namespace), Spec: v1alpha1.ApplicationDefinitionSpec{
				Description: "a web server", Versions: []v1alpha1.ApplicationVersion{offered("1.0.0")},
			}}
			w.Create(definition)
			hub.AwaitReady(w.World, gs)

			w.commit(map[string]string{"web.yaml": w.installation("1.1.0")})
			hub.Reconcile(w.World, gs)
			hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason)
			hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) { d.Spec.Versions = append(d.Spec.Versions, offered("1.1.0")) })
			hub.AwaitReady(w.World, gs)
			web := &v1alpha1.ApplicationInstallation{}
			require.True(t, w.Exists(web, "web"), tc.reason)
			assert.Equal(t, "1.1.0", web.Spec.ApplicationRef.Version)
		})
	}
}
