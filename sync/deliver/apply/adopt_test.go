package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// C66: an owner that adopts takes over what has no owner, and nothing else.
func TestAdopt(t *testing.T) {
	cases := map[string]struct {
		reason   string
		live     func(*fixture, manifest.Object)
		manifest map[string]string
		says     string
	}{
		"Nobody's": {"it is there for the taking", func(*fixture, manifest.Object) {}, nil, ""},
		"Argo CD's": {"it was made by the tool that is migrated from", func(_ *fixture, o manifest.Object) {
			o.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "a"})
			o.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
		}, nil, ""},
		"A Helm release's": {"Helm would take it back, or delete it", func(_ *fixture, o manifest.Object) {
			o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"})
		}, nil, "it belongs to Helm release shop/web; to take it over, annotate the manifest"},
		"A controller's": {"it goes with what made it", func(f *fixture, o manifest.Object) {
			f.create("configmaps", configMap(f.t, "maker", "x"))
			o.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: "maker", UID: f.live("configmaps", "maker").GetUID(), Controller: ptr.To(true),
			}})
		}, nil, "it belongs to ConfigMap maker; "},
		"Another owner's": {"two owners cannot have it", func(_ *fixture, o manifest.Object) {
			o.SetAnnotations(map[string]string{v1alpha1.OwnerAnnotation: "hub-1/GitSync/team/other"})
		}, nil, "it belongs to GitSync team/other; "},
		"A forger's": {"whatever the mark says, it is not ours", func(_ *fixture, o manifest.Object) {
			o.SetAnnotations(map[string]string{v1alpha1.OwnerAnnotation: "mine"})
		}, nil, `it belongs to "mine"; `},
		"Nobody's, opted out": {"the manifest wins", func(*fixture, manifest.Object) {}, map[string]string{v1alpha1.AdoptAnnotation: "false"},
			"it exists and Waybill did not make it; "},
		"A Helm release's, opted in": {"the manifest wins", func(_ *fixture, o manifest.Object) {
			o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "web"})
		}, map[string]string{v1alpha1.AdoptAnnotation: "true"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			foreign, ours := configMap(t, "settings", "foreign"), configMap(t, "settings", "ours")
			tc.live(f, foreign)
			f.create("configmaps", foreign)
			ours.SetAnnotations(tc.manifest)
			request := f.request(nil, ours)
			request.Adopt = true
			result := f.Apply(t.Context(), request)
			if tc.says == "" {
				requireClean(t, result)
				assert.Equal(t, "ours", f.value("settings"), tc.reason)
				return
			}
			require.Len(t, result.Problems, 1, tc.reason)
			assert.Equal(t, apply.ReasonConflict, result.Problems[0].Reason)
			assert.Contains(t, result.Problems[0].Message, tc.says)
			assert.Equal(t, "foreign", f.value("settings"), tc.reason)
		})
	}
}

// An owner that asks to adopt is not advised to ask.
func TestAdopt_hintWhereItIsAsked(t *testing.T) {
	f := newFixture(t)
	request := f.request(nil, adopting(configMap(t, "settings", "first")))
	requireClean(t, f.Apply(t.Context(), request))
	second := f.request(nil, adopting(configMap(t, "settings", "second")))
	second.Owner.Name = "second"
	defer f.Forget(second.Owner)
	requireClean(t, f.Apply(t.Context(), second))
	f.awaitNotice()
	lost := f.Apply(t.Context(), request)
	require.Len(t, lost.Problems, 1)
	assert.Equal(t, "it belongs to GitSync team/second; its manifest asks to adopt it too: "+
		"remove the annotation apps.waybill.dev/adopt from one of the two, or the manifest", lost.Problems[0].Message)
}
