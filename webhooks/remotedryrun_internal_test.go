package webhooks

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"waybill.dev/waybill/api/v1alpha1"
)

// halfDead is a cluster that refuses the ConfigMap bad, takes others, is broken where it is asked
// about a ConfigMap broken-*, and never answers about the ConfigMap slow.
func halfDead(t *testing.T) *remote {
	t.Helper()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch name, _, _ := strings.Cut(path.Base(r.URL.Path), "-"); name {
		case "broken":
			w.WriteHeader(http.StatusBadGateway)
		case "busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case "slow":
			<-ended
		case "bad":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
				Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "it is bad",
			})
		default:
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap"}`))
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	objects, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	require.NoError(t, err)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	return &remote{hash: sha256.Sum256([]byte("kubeconfig")), dynamic: objects, mapper: mapper}
}

func configMapTemplate(t *testing.T, name string) v1alpha1.ResourceTemplate {
	t.Helper()
	made := v1alpha1.ResourceTemplate{Metadata: v1alpha1.ResourceTemplateMetadata{Name: name}}
	require.NoError(t, json.Unmarshal([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`"}}`), &made.Spec.Template))
	return made
}

// dryRun is one on a hub that knows the cluster berlin.
func dryRun(t *testing.T) *remoteDryRun {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	berlin := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "berlin"}}
	berlin.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "berlin"}
	berlin.Status.Reachable = true
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "berlin"}, Data: map[string][]byte{"value": []byte("kubeconfig")}}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(berlin, secret).Build()
	return newRemoteDryRun(hub, time.Minute, func([]byte) (*rest.Config, error) { return &rest.Config{Host: "https://berlin.example.com"}, nil })
}

func scheduled(templates ...v1alpha1.ResourceTemplate) *v1alpha1.KubernetesApplication {
	app := &v1alpha1.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	app.Spec.ClusterName, app.Spec.ResourceTemplates = "berlin", templates
	return app
}

// What was refused in time is reported, and how many templates nothing is known of.
func TestRemoteDryRun_halfWay(t *testing.T) {
	d := dryRun(t)
	d.timeout = 5 * time.Second
	d.known.Put(types.NamespacedName{Namespace: "team", Name: "berlin"}, halfDead(t))
	app := scheduled(configMapTemplate(t, "slow"), configMapTemplate(t, "bad"), configMapTemplate(t, "good"))
	assert.Equal(t, []string{
		"resource template bad: cluster berlin would refuse it: it is bad",
		"1 of 3 changed resource templates were not validated by a dry run in cluster berlin within 5s",
	}, []string(d.try(t.Context(), app, nil)))
}

// What says nothing of a template is no refusal, and is reported once however many templates there are.
func TestRemoteDryRun_ofABrokenCluster(t *testing.T) {
	d := dryRun(t)
	d.known.Put(types.NamespacedName{Namespace: "team", Name: "berlin"}, halfDead(t))
	app := scheduled(configMapTemplate(t, "broken-1"), configMapTemplate(t, "bad"), configMapTemplate(t, "broken-2"), configMapTemplate(t, "busy"))
	warned := d.try(t.Context(), app, nil)
	require.Len(t, warned, 2)
	assert.Equal(t, "resource template bad: cluster berlin would refuse it: it is bad", warned[0])
	assert.Contains(t, warned[1], "3 of 4 changed resource templates could not be validated by a dry run in cluster berlin: ")
}

// A connection to a cluster that is gone goes with the next new one.
func TestRemoteDryRun_forgetsClusters(t *testing.T) {
	d := dryRun(t)
	gone := types.NamespacedName{Namespace: "team", Name: "gone"}
	d.known.Put(gone, &remote{})
	berlin := types.NamespacedName{Namespace: "team", Name: "berlin"}
	made, err := d.connect(t.Context(), berlin)
	require.NoError(t, err)
	assert.Equal(t, map[types.NamespacedName]*remote{berlin: made}, d.known.All())
}
