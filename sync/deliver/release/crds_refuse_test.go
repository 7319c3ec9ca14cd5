package release_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
)

// C61: an older chart does not take fields away that objects of others may have, and nothing else is written.
func TestEnsure_removesNoFieldsOfACRD(t *testing.T) {
	w := newWorld(t)
	first := w.widgets("one: {type: string}, two")
	first.Options.CRDs = v1alpha1.CRDCreateReplace
	w.ensure(first)
	older := w.widgets("one")
	older.Options.CRDs, older.Options.Atomic = v1alpha1.CRDCreateReplace, true
	_, err := w.try(t.Context(), older)
	assert.Equal(t, release.ReasonCRD, release.ReasonOf(err))
	require.EqualError(t, err, "refuse to replace CustomResourceDefinition.apiextensions.k8s.io widgets."+w.namespace+".example.com: the chart removes "+
		".spec.two of version v1. To keep it as it is, set deployOptions.helm.crds to Create; to remove them, apply the chart's CRD yourself once no object uses them")
	assert.Equal(t, []string{"1 deployed"}, w.revisions("widgets"))

	older.Options.CRDs = v1alpha1.CRDCreate
	w.ensure(older)
}

// C61: what another release or tool brought is not replaced, unless a user who may edit the CRD hands it over.
func TestEnsure_replacesNoCRDOfOthers(t *testing.T) {
	for name, c := range map[string]struct{ reason, marks, want string }{
		"installation": {"another installation or GitSync delivers it",
			`{"` + v1alpha1.OwnerAnnotation + `":"hub/GitSync/a/b"}`, "it belongs to hub/GitSync/a/b. To use it as it is, set"},
		"release": {"it is part of a release of somebody",
			`{"` + v1alpha1.OwnerAnnotation + `":null,"meta.helm.sh/release-name":"b","meta.helm.sh/release-namespace":"a"}`, "it belongs to the Helm release a/b. "},
		"nobody": {"helm install, kubectl or an earlier version of Waybill made it",
			`{"` + v1alpha1.OwnerAnnotation + `":null}`, "it has no annotation apps.waybill.dev/owner; its field managers are waybill-helm. "},
		"chart": {"a chart cannot hand it over to itself, nor to others",
			`{"` + v1alpha1.OwnerAnnotation + `":null,"` + v1alpha1.AdoptAnnotation + `":"true"}`, "it has no annotation apps.waybill.dev/owner"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			client, err := apiextensions.NewForConfig(w.cluster.RESTConfig())
			require.NoError(t, err)
			crds, crd := client.ApiextensionsV1().CustomResourceDefinitions(), "widgets."+w.namespace+".example.com"
			w.ensure(w.widgets("one"))
			annotate := func(marks string) {
				_, err := crds.Patch(t.Context(), crd, types.MergePatchType, []byte(`{"metadata":{"annotations":`+marks+`}}`), metav1.PatchOptions{FieldManager: "waybill-helm"})
				require.NoError(t, err)
			}
			annotate(c.marks)
			same := w.widgets("one")
			same.Options.CRDs = v1alpha1.CRDCreateReplace
			w.ensure(same)

			next := w.widgets("one: {type: string}, two")
			next.Options.CRDs = v1alpha1.CRDCreateReplace
			_, err = w.try(t.Context(), next)
			assert.Equal(t, release.ReasonCRD, release.ReasonOf(err), c.reason)
			require.ErrorContains(t, err, c.want, c.reason)
			assert.ErrorContains(t, err, "kubectl annotate customresourcedefinition "+crd+" apps.waybill.dev/adopt=default/widgets")

			annotate(`{"` + v1alpha1.AdoptAnnotation + `":"default/widgets"}`)
			w.ensure(next)
			found, err := crds.Get(t.Context(), crd, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, "hub/ApplicationInstallation/default/widgets", found.Annotations[v1alpha1.OwnerAnnotation])
			assert.Contains(t, found.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "two")
		})
	}
}

// C35: who forges a record that names a CRD has it deleted neither by an upgrade nor by an uninstall.
func TestUninstall_deletesNoCRDThatAnAlteredRecordNames(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.widgets("one"))
	crd := "widgets." + w.namespace + ".example.com"
	w.forge("widgets", "sh.helm.release.v1.widgets.v2", "2", `{"name":"widgets","version":2,"info":{"status":"failed"},"manifest":`+
		`"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: `+crd+`}\n"}`)
	w.ensure(w.widgets("two"))
	_, err := w.engine.Uninstall(t.Context(), w.target, w.identity("widgets"), release.Options{}, nil)
	require.NoError(t, err)
	client, err := apiextensions.NewForConfig(w.cluster.RESTConfig())
	require.NoError(t, err)
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), crd, metav1.GetOptions{})
	require.NoError(t, err)
}
