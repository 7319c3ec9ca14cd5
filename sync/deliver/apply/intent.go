package apply

import (
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// Intent returns, before anything is applied, the identities that objects will have in the cluster:
// namespaced objects with their namespace, cluster-scoped ones without. For a kind that is not
// known yet, it returns both. It asks discovery if it has to. Callers that apply right away use
// Request.Intent instead.
func (a *Applier) Intent(objects []manifest.Object, defaultNamespace string) []manifest.ID {
	var ids []manifest.ID
	for _, object := range objects {
		if object.Unstructured == nil {
			continue
		}
		id := object.ID()
		if id.Namespace == "" {
			id.Namespace = defaultNamespace
		}
		mapping, err := a.target.Mapper().RESTMapping(id.GroupVersionKind().GroupKind(), id.Version)
		if err == nil && isNamespaced(mapping) {
			ids = append(ids, id)
			continue
		}
		if err != nil {
			ids = append(ids, id)
		}
		id.Namespace = ""
		ids = append(ids, id)
	}
	return inventory.Merge(nil, ids)
}
