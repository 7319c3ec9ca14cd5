package cluster_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// names is a set that goroutines share.
type names struct {
	mu   sync.Mutex
	list []string
}

func (n *names) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, name)
}

func (n *names) has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.list, name)
}

// createDefinition creates an ApplicationDefinition past every registry.
func createDefinition(t testing.TB, config *rest.Config) string {
	t.Helper()
	direct, err := client.New(config, client.Options{Scheme: newScheme(t)})
	require.NoError(t, err)
	definition := &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "app-"},
		Spec:       v1alpha1.ApplicationDefinitionSpec{Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0"}}},
	}
	require.NoError(t, direct.Create(t.Context(), definition))
	return definition.Name
}

func execCredential(t testing.TB, certificate, key []byte) []byte {
	t.Helper()
	content, err := json.Marshal(clientauthentication.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthentication.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status: &clientauthentication.ExecCredentialStatus{
			ClientCertificateData: string(certificate),
			ClientKeyData:         string(key),
		},
	})
	require.NoError(t, err)
	return content
}
