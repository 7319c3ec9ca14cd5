package apply

import (
	"waybill.dev/waybill/sync/apply/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// Intent returns the identities that some objects will have in the cluster, before
// anything is applied: each in its namespace, and cluster-scoped ones in none. Of a
// kind that is not known yet, both are returned. It asks discovery where it must.
// Whoever applies right away uses Request.Intent instead.
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
