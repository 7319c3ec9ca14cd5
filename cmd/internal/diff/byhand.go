package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/sync/deliver/apply"
)

// kubectlManager is the field manager of `kubectl apply --server-side`.
const kubectlManager = "kubectl"

// managerOf returns the field manager to apply an object as: that of the delivery. By hand, it is the
// manager that applied the live object before, because applying the file again removes the fields of
// that manager that the file does not name any more: the GitSync that delivers it, else kubectl, else
// the only one that did.
func (d delivery) managerOf(live *unstructured.Unstructured) string {
	if !d.byHand || live == nil {
		return d.manager
	}
	if owner, ok := apply.OwnerOf(live); ok && owner.Kind == v1alpha1.GitSyncKind {
		return v1alpha1.FieldManager
	}
	var managers []string
	for _, entry := range live.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			managers = append(managers, entry.Manager)
		}
	}
	switch {
	case slices.Contains(managers, kubectlManager):
		return kubectlManager
	case len(managers) == 1:
		return managers[0]
	}
	return d.manager
}

// lastApplied returns the manifest that `kubectl apply` has noted in a live object; nil if there is
// none, or an object of ours, which is applied by its manager.
func lastApplied(live *unstructured.Unstructured) []byte {
	if live == nil {
		return nil
	}
	noted := live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	if _, ours := apply.OwnerOf(live); ours || noted == "" {
		return nil
	}
	return []byte(noted)
}

// patchByHand changes an object as `kubectl apply` does, in a dry run: what the manifest applied last
// has and the wanted one has not is removed. kubectl keeps its note among the annotations, and notes an
// empty map where there are no others; without the note in what is wanted, that map would have gone
// from it, with the annotations of other managers.
func patchByHand(ctx context.Context, api client.Client, last []byte, live, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wanted = wanted.DeepCopy()
	annotations := wanted.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(last)
	wanted.SetAnnotations(annotations)
	current, err := json.Marshal(live.Object)
	if err != nil {
		return nil, fmt.Errorf("make patch: %w", err)
	}
	modified, err := json.Marshal(wanted.Object)
	if err != nil {
		return nil, fmt.Errorf("make patch: %w", err)
	}
	kind, patch := types.MergePatchType, []byte(nil)
	if typed, unknown := clientgoscheme.Scheme.New(wanted.GroupVersionKind()); unknown != nil {
		patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(last, modified, current)
	} else if lists, failed := strategicpatch.NewPatchMetaFromStruct(typed); failed != nil {
		err = failed
	} else {
		kind = types.StrategicMergePatchType
		patch, err = strategicpatch.CreateThreeWayMergePatch(last, modified, current, lists, true)
	}
	if err != nil {
		return nil, fmt.Errorf("make patch: %w", err)
	}
	after := live.DeepCopy()
	return after, api.Patch(ctx, after, client.RawPatch(kind, patch), client.DryRunAll, client.FieldOwner(cli.FieldManager))
}
