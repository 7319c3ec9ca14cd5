package tree

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// ofStateful returns the Application of a StatefulApplication, its snapshots and its rollbacks.
func (b *builder) ofStateful(ctx context.Context, at *clusterReader, app *v1alpha1.StatefulApplication, level int) ([]*treeNode, error) {
	nodes := b.readAll(ctx, at, []manifest.ID{applicationID(app.Namespace, app.GetApplicationName())}, level)
	for _, use := range []struct {
		kind string
		path []string
	}{
		{v1alpha1.ApplicationSnapshotKind, []string{"spec", "source", "applicationName"}},
		{v1alpha1.ApplicationRollbackKind, []string{"spec", "applicationName"}},
	} {
		found, err := at.list(ctx, v1alpha1.GroupVersion.WithKind(use.kind), client.InNamespace(app.Namespace))
		if err != nil {
			b.note(fmt.Sprintf("those of StatefulApplication %s in %s are left out: %s", app.Name, app.Namespace, err))
			continue
		}
		found = slices.DeleteFunc(found, func(u unstructured.Unstructured) bool {
			name, _, _ := unstructured.NestedString(u.Object, use.path...)
			return name != app.Name
		})
		for i := range found {
			nodes = append(nodes, describe(&found[i], at))
		}
	}
	sortNodes(nodes)
	return nodes, nil
}
