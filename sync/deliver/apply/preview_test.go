package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
