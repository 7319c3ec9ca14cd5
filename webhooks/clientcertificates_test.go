package webhooks_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/webhooks"
	"waybill.dev/waybill/webhooks/intake"
)

// writeClientCertificate writes ca.crt, tls.crt and tls.key of a client of that name into a folder.
func writeClientCertificate(t *testing.T, folder, name string) {
	t.Helper()
	ca, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "webhooks"}, crypto.Signer(ca))
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, key.Public(), ca)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	for file, of := range map[string]*x509.Certificate{"ca.crt": authority, "tls.crt": leaf} {
		content, err := cert.EncodeCertificates(of)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), content, 0o600))
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.key"), encoded, 0o600))
}

// admissionConfiguration writes the one that the page on operations shows, and returns its file.
func admissionConfiguration(t *testing.T, folder string) string {
	t.Helper()
	file, kubeconfig := filepath.Join(folder, "admission.yaml"), filepath.Join(folder, "webhooks.kubeconfig")
	plugin := func(name string) string {
		return "\n- name: " + name + `
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: ` + kubeconfig
	}
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:"+
		plugin("MutatingAdmissionWebhook")+plugin("ValidatingAdmissionWebhook")), 0o600))
	require.NoError(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\nusers:\n- name: '*'\n  user: {client-certificate: "+
		filepath.Join(folder, "tls.crt")+", client-key: "+filepath.Join(folder, "tls.key")+"}\n"), 0o600))
	return file
}

// An API server whose admission configuration names a client certificate is answered, and the webhook
// finds itself ready, though it has none.
func TestClientCertificates_ofAnAPIServer(t *testing.T) {
	folder := t.TempDir()
	writeClientCertificate(t, folder, "kube-apiserver")
	c := env.Start(t, env.Options{
		Name: "client-certificate", NoControllers: true, CRDs: []string{crds},
		APIServerFlags: []string{"--admission-control-config-file=" + admissionConfiguration(t, folder)},
	})
	s := serve(t, c.RESTConfig(), func(o *webhooks.Options) {
		o.Clients = intake.Clients{CAFile: filepath.Join(folder, "ca.crt"), Names: []string{"kube-apiserver"}}
	})
	s.awaitReady(t)
	admin, _ := newClient(t, c.RESTConfig(), nil)
	ns := c.Namespace(t)
	require.NoError(t, admin.Create(t.Context(), newKubernetesApplication(ns), client.DryRunAll))
	bad := newCluster(ns, "berlin")
	bad.Spec.KubeconfigSecretRef.Key = "a/b"
	err := admin.Create(t.Context(), bad, client.DryRunAll)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "failed calling webhook")
}
