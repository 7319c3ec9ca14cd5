package dashboard

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// find returns the objects that have a text in their name, those that begin with it first.
func (s *server) find(ctx context.Context, v *viewer, text string) []hit {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" {
		return nil
	}
	var begin, contain []hit
	add := func(h hit) {
		switch name := strings.ToLower(h.Name); {
		case strings.HasPrefix(name, text):
			begin = append(begin, h)
		case strings.Contains(name, text):
			contain = append(contain, h)
		}
	}
	addAll(add, visible[*v1alpha1.KubernetesCluster](ctx, v, s.inventory.clusters), v1alpha1.KubernetesClusterKind, "kubernetesclusters")
	addAll(add, visible[*v1alpha1.ApplicationDefinition](ctx, v, s.inventory.definitions), v1alpha1.ApplicationDefinitionKind, "applicationdefinitions")
	addAll(add, visible[*v1alpha1.GitSync](ctx, v, s.inventory.syncs), v1alpha1.GitSyncKind, "gitsyncs")
	addAll(add, visible[*v1alpha1.KubernetesApplication](ctx, v, s.inventory.placed), v1alpha1.KubernetesApplicationKind, "kubernetesapplications")
	for _, k := range visible[*v1alpha1.KubernetesCluster](ctx, v, s.inventory.clusters) {
		for _, i := range k.Status.Installations {
			add(hit{
				Kind: v1alpha1.ApplicationInstallationKind, Namespace: i.Namespace, Name: i.Name, Where: k.Namespace + "/" + k.Name,
				Link: objectLink(k.Namespace, k.Name, "applicationinstallations", i.Namespace, i.Name),
			})
		}
	}
	return append(begin, contain...)
}

func addAll[T client.Object](add func(hit), found []T, kind, resource string) {
	for _, o := range found {
		add(hit{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Link: objectLink("", "", resource, o.GetNamespace(), o.GetName())})
	}
}
