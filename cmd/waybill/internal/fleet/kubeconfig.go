package fleet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
)

// parse reads the kubeconfig of a Secret by the rules of waybill-sync (C38): who may write
// the Secret must not thereby run programs on the machine of who reads it. No part of the
// Secret is repeated in an error.
func parse(secret *corev1.Secret, ref *v1alpha1.SecretKeyReference) (*rest.Config, error) {
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
