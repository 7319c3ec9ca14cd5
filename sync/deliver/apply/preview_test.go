package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// C13, C53: what is predicted is what Apply would report.
func TestPreview(t *testing.T) {
	us := Owner{HubID: "hub", Kind: "GitSync", Namespace: "a", Name: "b"}
	elsewhere := us
	elsewhere.HubID = "other"
	object := func(annotations map[string]string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		u.SetName("site")
		u.SetAnnotations(annotations)
		return u
	}
	marked := func(by Owner) *unstructured.Unstructured {
		return object(map[string]string{v1alpha1.OwnerAnnotation: by.String()})
	}
	released := object(map[string]string{releaseNameAnnotation: "web", releaseNamespaceAnnotation: "a"})
	adopting, declining := object(map[string]string{v1alpha1.AdoptAnnotation: "true"}), object(map[string]string{v1alpha1.AdoptAnnotation: "false"})
	unknown := us
	unknown.HubID = ""
	for reason, tc := range map[string]struct {
		preview      Preview
		live, wanted *unstructured.Unstructured
		refusal      string
		owns         bool
	}{
		"nothing is there":                      {Preview{Owner: us}, nil, object(nil), "", false},
		"it is the owner's":                     {Preview{Owner: us}, marked(us), object(nil), "", true},
		"it is of the owner of another hub":     {Preview{Owner: us}, marked(elsewhere), object(nil), "it belongs to GitSync a/b of hub other; " + AdoptionHint, false},
		"which hub this is is not known":        {Preview{Owner: unknown}, marked(elsewhere), object(nil), "", true},
		"its owner has another name":            {Preview{Owner: unknown}, marked(Owner{HubID: "hub", Kind: "GitSync", Namespace: "a", Name: "c"}), object(nil), "it belongs to GitSync a/c; " + AdoptionHint, false},
		"the manifest takes it from its owner":  {Preview{Owner: us}, marked(elsewhere), adopting, "", false},
		"Waybill did not make it":               {Preview{Owner: us}, object(nil), object(nil), "it exists and Waybill did not make it; " + AdoptionHint, false},
		"the owner adopts":                      {Preview{Owner: us, Adopt: true}, object(nil), object(nil), "", false},
		"the owner adopts, the manifest not":    {Preview{Owner: us, Adopt: true}, object(nil), declining, "it exists and Waybill did not make it; " + AdoptionHint, false},
		"a release is not adopted by the owner": {Preview{Owner: us, Adopt: true}, released, object(nil), "it belongs to Helm release a/web; " + AdoptionHint, false},
		"an inventory alone is no title":        {Preview{Owner: us, Inventory: []manifest.ID{manifest.Object{Unstructured: object(nil)}.ID()}}, object(nil), object(nil), "it exists and Waybill did not make it; " + AdoptionHint, false},
	} {
		assert.Equal(t, tc.refusal, tc.preview.Refusal(tc.live, tc.wanted, manifest.Object{Unstructured: tc.wanted}.ID()), reason)
		assert.Equal(t, tc.owns, tc.preview.Owns(tc.live), reason)
	}
}

// P9, C13: what is predicted to be pruned is what Apply deletes.
func TestPreview_Released(t *testing.T) {
	us := Owner{HubID: "hub", Kind: "GitSync", Namespace: "a", Name: "b"}
	elsewhere := us
	elsewhere.HubID = "other"
	unknown := us
	unknown.HubID = ""
	object := func(annotations map[string]string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		u.SetAnnotations(annotations)
		return u
	}
	kept := object(map[string]string{v1alpha1.OwnerAnnotation: us.String(), v1alpha1.PruneAnnotation: "disabled"})
	byUser := kept.DeepCopy()
	kept.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + v1alpha1.PruneAnnotation + `":{}}}}`),
	}})
	for reason, tc := range map[string]struct {
		owner Owner
		live  *unstructured.Unstructured
		want  string
	}{
		"it is the owner's":                      {us, object(map[string]string{v1alpha1.OwnerAnnotation: us.String()}), ""},
		"which hub this is is not known":         {unknown, object(map[string]string{v1alpha1.OwnerAnnotation: elsewhere.String()}), ""},
		"it is of the owner of another hub":      {us, object(map[string]string{v1alpha1.OwnerAnnotation: elsewhere.String()}), "belongs to another owner by now"},
		"it lost its mark":                       {us, object(nil), "does not say any more that it is Waybill's: it is released"},
		"its manifest keeps it":                  {us, kept, "its annotation apps.waybill.dev/prune keeps it"},
		"another user, who does not decide that": {us, byUser, ""},
	} {
		assert.Equal(t, tc.want, Preview{Owner: tc.owner}.Released(tc.live), reason)
	}
}

// P9: what stays for now is what Apply does not delete as long as something else cannot be read or applied.
func TestPreview_HeldBack(t *testing.T) {
	of := func(group, kind, namespace, name string) manifest.ID {
		return manifest.ID{Group: group, Version: "v1", Kind: kind, Namespace: namespace, Name: name}
	}
	old, newer := of("", "ConfigMap", "web", "site-1"), of("", "ConfigMap", "web", "site-2")
	space, other := of("", "Namespace", "", "web"), of("", "Namespace", "", "shop")
	crd, table := of(crdKind.Group, crdKind.Kind, "", "tables.example.com"), of("example.com", "Table", "shop", "one")
	user := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "web", "name": "site"},
		"spec": map[string]any{"volumes": []any{map[string]any{"name": "site-1"}}},
	}}
	using := Attempt{ID: of("apps", "Deployment", "web", "site"), Live: user, Refused: true}
	delivered := []manifest.ID{using.ID, table, old, space, other, crd}
	const uses, under = ", which could not be applied, may still use it", " stays for now, and would be deleted with it"
	unread := func(id manifest.ID) Preview {
		return Preview{Inventory: delivered, Unread: []manifest.Problem{{ID: id, File: "a.yaml", Line: 3}}}
	}
	const unreadable = "a.yaml:3, which cannot be read, may describe it"
	for reason, tc := range map[string]struct {
		preview Preview
		stale   []manifest.ID
		wanted  []Attempt
		want    map[manifest.ID]string
	}{
		"all is well":                        {Preview{Inventory: delivered}, []manifest.ID{old, space}, []Attempt{{ID: newer}}, nil},
		"a file may have anything":           {unread(manifest.ID{}), []manifest.ID{old, other}, nil, map[manifest.ID]string{old: unreadable, other: unreadable}},
		"a file has a ConfigMap":             {unread(manifest.ID{Kind: "ConfigMap"}), []manifest.ID{old, space, other}, nil, map[manifest.ID]string{old: unreadable, space: old.String() + under}},
		"a kind may be misspelled":           {Preview{}, []manifest.ID{old, other}, []Attempt{{ID: of("", "ConfigMpa", "web", "site-1"), Waits: true}}, map[manifest.ID]string{old: "ConfigMpa web/site-1, which waits for its kind or namespace, may replace it"}},
		"what was refused uses it":           {Preview{Inventory: delivered}, []manifest.ID{old, space}, []Attempt{using}, map[manifest.ID]string{old: using.ID.String() + uses, space: ""}},
		"what was refused is not ours":       {Preview{}, []manifest.ID{old, space}, []Attempt{using}, nil},
		"what was refused is in it":          {Preview{Inventory: delivered}, []manifest.ID{other, space, crd}, []Attempt{{ID: table, Refused: true}}, map[manifest.ID]string{other: table.String() + under, crd: table.String() + under}},
		"what was refused is somewhere else": {Preview{Inventory: delivered}, []manifest.ID{other, crd}, []Attempt{using}, nil},
	} {
		var stale []Attempt
		for _, id := range tc.stale {
			stale = append(stale, Attempt{ID: id})
		}
		got := tc.preview.HeldBack(stale, tc.wanted)
		for _, id := range tc.stale {
			if why, any := tc.want[id]; any && why == "" {
				assert.Contains(t, got[id], under, "%s: %s", reason, id) // of either of those that stay
				continue
			}
			assert.Equal(t, tc.want[id], got[id], "%s: %s", reason, id)
		}
	}
}

// P9: the fate of what is no longer wanted, which pruning and its prediction share.
func TestFateOf(t *testing.T) {
	const us = "hub/GitSync/a/b"
	for name, tc := range map[string]struct {
		reason string
		live   *live
		unkept bool
		want   fate
	}{
		"absent":            {"nothing is left", nil, false, gone},
		"ours":              {"the mark says so", &live{owner: us}, false, deleted},
		"theirs":            {"the mark says so", &live{owner: "hub/GitSync/c/d"}, false, released},
		"unmarked":          {"an inventory is no title", &live{}, false, released},
		"kept":              {"its manifest asked for it", &live{owner: us, keep: true}, false, released},
		"kept, all goes":    {"its owner goes", &live{owner: us, keep: true}, true, deleted},
		"terminating":       {"it is waited for", &live{owner: us, deleting: true}, false, terminating},
		"theirs, deleting":  {"it is not waited for", &live{deleting: true}, false, released},
		"kept, terminating": {"it is not waited for", &live{owner: us, keep: true, deleting: true}, false, released},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, fateOf(tc.live, us, tc.unkept), tc.reason) })
	}
}
