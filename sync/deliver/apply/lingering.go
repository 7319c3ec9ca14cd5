package apply

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// namespacesExplained is how many Namespaces that are not gone yet are read to find out why.
const namespacesExplained = 3

// explain says of Namespaces that are waited for what they wait for themselves. They say so some time after
// they were deleted, of which Notify is not called.
func (a *Applier) explain(ctx context.Context, result *Result) {
	result.Lingering = a.lingering(ctx, result.Waiting)
	result.Unseen = result.Unseen || slices.ContainsFunc(result.Waiting, isNamespace)
}

func isNamespace(id manifest.ID) bool { return id.Group == "" && id.Kind == "Namespace" }

// lingering returns what the first of the Namespaces that are waited for wait for themselves. It leaves
// out those that do not say, or may not be read.
func (a *Applier) lingering(ctx context.Context, waiting []manifest.ID) map[manifest.ID]string {
	var found map[manifest.ID]string
	read := 0
	for _, id := range waiting {
		if !isNamespace(id) || read == namespacesExplained {
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
