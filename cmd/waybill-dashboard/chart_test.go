package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

const (
	limit = env.Limit
	often = 20 * time.Millisecond
)

// grant creates the account and the rights that the chart gives it.
func grant(t *testing.T, api *env.Cluster, impersonation map[string]any) {
	t.Helper()
	chart, err := loader.LoadDir("../../charts/waybill")
	require.NoError(t, err)
	install := action.NewInstall(&action.Configuration{Capabilities: chartutil.DefaultCapabilities})
	install.ReleaseName, install.Namespace = "waybill", v1alpha1.DefaultSystemNamespace
	install.ClientOnly, install.DryRun, install.KubeVersion = true, true, &chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	release, err := install.RunWithContext(t.Context(), chart, map[string]any{"dashboard": map[string]any{
		"enabled": true, "url": "https://waybill.example.com", "proxy": map[string]any{"caConfigMap": "proxy"}, "impersonation": impersonation,
	}})
	require.NoError(t, err)
	c, err := client.New(api.RESTConfig(), client.Options{})
	require.NoError(t, err)
	require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultSystemNamespace}})))
	for _, document := range strings.Split(release.Manifest, "\n---\n") {
		var kind metav1.PartialObjectMetadata
		require.NoError(t, yaml.Unmarshal([]byte(document), &kind))
		of, known := map[string]client.Object{
			"ServiceAccount": &corev1.ServiceAccount{}, "ClusterRole": &rbacv1.ClusterRole{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
		}[kind.Kind]
		if !known || !strings.HasPrefix(kind.Name, "waybill-dashboard") {
			continue
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), of))
		require.NoError(t, c.Create(t.Context(), of))
		t.Cleanup(func() { assert.NoError(t, c.Delete(context.WithoutCancel(t.Context()), of)) })
	}
}

// accountOf returns how the chart's account reaches the API server.
func accountOf(t *testing.T, api *env.Cluster) *rest.Config {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(api.RESTConfig())
	require.NoError(t, err)
	token, err := clientset.CoreV1().ServiceAccounts(v1alpha1.DefaultSystemNamespace).CreateToken(t.Context(), programName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := rest.AnonymousClientConfig(api.RESTConfig())
	config.BearerToken, config.QPS = token.Status.Token, -1
	return config
}

// tenant binds a user to ClusterRole admin in a namespace.
func tenant(t *testing.T, api *env.Cluster, namespace string) {
	t.Helper()
	c, err := client.New(api.RESTConfig(), client.Options{})
	require.NoError(t, err)
	all := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "tenant"}
	require.NoError(t, c.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{all}}))
	require.NoError(t, c.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: namespace}},
	}))
	api.AwaitGranted(t, namespace, namespace, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group, ""}, Resources: []string{"gitsyncs", "configmaps"}, Verbs: []string{"create"}})
}

// The account of the chart can do in the name of others what the value says, and in its own nothing but watch.
func TestChart_whatTheAccountMay(t *testing.T) {
	api := env.Shared(t, env.Options{Name: "hub", NoControllers: true, CRDs: []string{"../../charts/waybill/crds"}})
	configMap := func(namespace string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "x-"}}
	}
	for name, tc := range map[string]struct {
		impersonation map[string]any
		writes        bool // what is not of Waybill
		masters       bool // reads as them
	}{
		"Auto":        {map[string]any{}, false, false},
		"Groups":      {map[string]any{"mode": "Constrained", "groups": []any{"team"}}, false, false},
		"ExtraRules":  {map[string]any{"groups": []any{"team"}, "extraRules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"impersonate-on:user-info:create"}}}}, true, false},
		"Any":         {map[string]any{"mode": "Any"}, true, true},
		"AnyOfGroups": {map[string]any{"mode": "Any", "groups": []any{"team"}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			ns := api.Namespace(t)
			grant(t, api, tc.impersonation)
			tenant(t, api, ns)
			config := accountOf(t, api)
			as := func(user string, groups ...string) client.Client {
				other := rest.CopyConfig(config)
				other.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
				c, err := client.New(other, client.Options{})
				require.NoError(t, err)
				return c
			}
			secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
			require.Eventually(t, func() bool { return as(ns, "team").List(t.Context(), secrets, client.InNamespace(ns)) == nil }, limit, often, "the tenant reads their own")
			assert.Error(t, as(ns, "team").List(t.Context(), configMaps), "and nothing else")
			assert.Equal(t, tc.writes, as(ns, "team").Create(t.Context(), configMap(ns)) == nil, "and writes what is not of Waybill")
			assert.Equal(t, tc.masters, as(ns, "system:masters").List(t.Context(), configMaps) == nil, "constrained, system:masters cannot be impersonated; otherwise RBAC names the groups that can, or all can")
			assert.Error(t, as("system:serviceaccount:"+ns+":default").List(t.Context(), configMaps, client.InNamespace(ns)), "accounts are not users")
			own, err := client.New(config, client.Options{})
			require.NoError(t, err)
			assert.Error(t, own.List(t.Context(), secrets, client.InNamespace(ns)))
			assert.Error(t, own.Create(t.Context(), configMap(ns)))
		})
	}
}

// C44: with the account and the rights of the chart, the program shows each who a proxy vouches for what is theirs: by constrained
// impersonation, which Kubernetes 1.36 has.
func TestRun_withTheRightsOfTheChart(t *testing.T) {
	api := env.Shared(t, env.Options{Name: "hub", NoControllers: true, CRDs: []string{"../../charts/waybill/crds"}})
	mine, other := api.Namespace(t), api.Namespace(t)
	grant(t, api, map[string]any{})
	tenant(t, api, mine)
	for _, namespace := range []string{mine, other} {
		createSync(t, api, namespace, "sync-of-"+namespace)
	}
	config := accountOf(t, api)
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}], users: [{name: u, user: {token: %q}}]}`,
		config.Host, base64.StdEncoding.EncodeToString(config.CAData), config.BearerToken)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(kubeconfig), 0o600))
	proxy := clientCertificate(t, filepath.Join(dir, "ca.crt"))
	listen, health := env.Address(t), env.Address(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{
			"--kubeconfig=" + filepath.Join(dir, "kubeconfig"), "--url=https://waybill.example.com", "--listen=" + listen,
			"--metrics-bind-address=0", "--health-probe-bind-address=" + health, "--cache-dir=" + filepath.Join(dir, "cache"), "--requestheader-client-ca-file=" + filepath.Join(dir, "ca.crt"),
		})
	}()
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{proxy}}}} // it signs its certificate itself
	get := func(user, path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+listen+path, nil)
		require.NoError(t, err)
		request.Host = "waybill.example.com"
		request.Header.Set("X-Remote-User", user)
		response, err := browser.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	require.Eventually(t, func() bool {
		_, body := get(mine, "/gitsyncs")
		return strings.Contains(body, "sync-of-"+mine)
	}, limit, often)
	_, body := get(mine, "/gitsyncs")
	assert.NotContains(t, body, "sync-of-"+other)
	for _, end := range []string{"", "/tree"} {
		status, body := get(mine, "/objects/-/-/gitsyncs/"+mine+"/sync-of-"+mine+end)
		assert.Equal(t, http.StatusOK, status, body)
		status, body = get(mine, "/objects/-/-/gitsyncs/"+other+"/sync-of-"+other+end)
		assert.Equal(t, http.StatusForbidden, status, body)
	}
	_, body = get("stranger", "/gitsyncs")
	assert.NotContains(t, body, "sync-of-")
	response, err := http.Get("http://" + health + "/readyz") //nolint:noctx // it is this process
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusOK, response.StatusCode)
	stop()
	require.NoError(t, <-ended)
}

func createSync(t *testing.T, api *env.Cluster, namespace, name string) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c, err := client.New(api.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.GitSyncSpec{URL: "https://example.com/a.git"},
	}))
}

// clientCertificate returns one that is signed by the authority that it writes into a file.
func clientCertificate(t *testing.T, file string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	authority, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "proxies"}, key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}), 0o600))
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "front"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, own.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: own}
}
