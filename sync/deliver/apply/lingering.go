package apply

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// namespacesExplained is how many Namespaces that are not gone yet are read to find out why.
const namespacesExplained = 3

// lingering returns what the first of the Namespaces that are waited for wait for themselves. It leaves
// out those that do not say, or may not be read.
func (a *Applier) lingering(ctx context.Context, waiting []manifest.ID) map[manifest.ID]string {
	var found map[manifest.ID]string
	read := 0
	for _, id := range waiting {
		if id.Group != "" || id.Kind != "Namespace" || read == namespacesExplained {
			continue
		}
		read++
		namespace, err := a.target.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, id.Name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		if problem := health.NamespaceProblem(namespace); problem != "" {
			if found == nil {
				found = make(map[manifest.ID]string)
			}
			found[id] = problem
		}
	}
	return found
}
