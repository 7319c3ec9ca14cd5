package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

func helmVersion(version string) v1alpha1.ApplicationVersion {
	return v1alpha1.ApplicationVersion{Version: version, Template: &v1alpha1.ApplicationTemplate{
		Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{
			URL: "https://charts.example.com", ChartName: "web", ChartVersion: "1.0.0",
		}},
	}}
}

// newDefinition has a name that no other test has.
func newDefinition(versions ...string) *v1alpha1.ApplicationDefinition {
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
	for _, v := range versions {
		d.Spec.Versions = append(d.Spec.Versions, helmVersion(v))
	}
	return d
}

// definition creates one, for this test.
func definition(t *testing.T, admin client.Client, change func(*v1alpha1.ApplicationDefinition)) *v1alpha1.ApplicationDefinition {
	t.Helper()
	d := newDefinition("v1.0.0", "v1.1.0")
	if change != nil {
		change(d)
	}
	require.NoError(t, admin.Create(t.Context(), d, client.FieldOwner(v1alpha1.FieldManager)))
	t.Cleanup(func() { _ = admin.Delete(afterwards(t), d) })
	return d
}

func newInstallation(namespace, definition, version string) *v1alpha1.ApplicationInstallation {
	return &v1alpha1.ApplicationInstallation{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationInstallationKind},
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: namespace},
		Spec: v1alpha1.ApplicationInstallationSpec{
			ApplicationRef: v1alpha1.ApplicationReference{Name: definition, Version: version},
		},
	}
}

func newApplication(namespace string) *v1alpha1.Application {
	return &v1alpha1.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind},
		ObjectMeta: metav1.ObjectMeta{Name: "wordpress", Namespace: namespace},
		Spec: v1alpha1.ApplicationSpec{
			Type:     "WordPress",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "wordpress"}},
		},
	}
}

func newGitSync(namespace string) *v1alpha1.GitSync {
	return &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Name: "catalog", Namespace: namespace},
		Spec:       v1alpha1.GitSyncSpec{URL: "https://git.example.com/catalog"},
	}
}

func newCluster(namespace, secret string) *v1alpha1.KubernetesCluster {
	c := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: "berlin", Namespace: namespace}}
	if secret != "" {
		c.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: secret}
	}
	return c
}

func healthCheck(template string) *v1alpha1.ApplicationHealthCheck {
	return &v1alpha1.ApplicationHealthCheck{Template: runtime.RawExtension{Raw: []byte(template)}}
}

const validPod = `{"spec": {"containers": [{"name": "check", "image": "curl", "readinessProbe": {"exec": {"command": ["true"]}}}]}}`
