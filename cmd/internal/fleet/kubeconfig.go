package fleet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
)

// ParseKubeconfig reads the kubeconfig of a Secret by the rules of waybill-sync: write access to the
// Secret must not allow running programs on the machine of its readers. Errors never repeat any
// part of the Secret.
func ParseKubeconfig(secret *corev1.Secret, ref *v1alpha1.SecretKeyReference) (*rest.Config, error) {
	keys := []string{ref.Key}
	if ref.Key == "" {
		keys = []string{"value", "kubeconfig"}
	}
	for _, key := range keys {
		if content, ok := secret.Data[key]; ok {
			return cluster.ParseKubeconfig(content, cluster.KubeconfigOptions{})
		}
	}
	return nil, fmt.Errorf("read kubeconfig: secret %s/%s has no key %s", secret.Namespace, secret.Name, strings.Join(keys, " or "))
}
