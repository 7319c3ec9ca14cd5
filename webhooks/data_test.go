package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// S21, S32, S39, S57, S59, S62, S68, S77, C18: of each kind, something that only admission refuses.
func TestData_admissionRefuses(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	for name, tc := range map[string]struct {
		kind, fields string
		message      string
	}{
		"pattern":          {statefulApplication, `{spec: {` + fromSnapshot + `, valueSubstitutionRules: [{type: EnvVar, match: Regex, oldValue: "(a"}]}}`, "spec.valueSubstitutionRules[0].oldValue"},
		"mapping":          {statefulApplicationClass, `{storageClassMapping: {fast: Slow}}`, "storageClassMapping[fast]"},
		"handler":          {statefulApplicationClass, `{parameters: {a: b}}`, "handler data.waybill.dev has no parameters: remove them"},
		"tag":              {snapshot, `{spec: {snapshotClassName: a, source: {type: Application, applicationName: a}, tags: {"": a}}}`, "spec.tags"},
		"snapshotter":      {snapshotClass, `{parameters: {a: b}}`, "snapshotter data.waybill.dev has no parameters: remove them"},
		"two hooks in one": {snapshotClass, `{preHooks: [{name: a, actionName: a}, {name: b, actionName: b}]}`, `runs in the same container as hook "a"`},
		"content":          {snapshotContent, `{spec: {snapshotClassName: a, snapshotRef: {namespace: a.b, name: a}}}`, "spec.snapshotRef.namespace"},
		"rollback":         {rollback, `{spec: {snapshotClassName: a, applicationName: A, ` + fromSnapshot + `}}`, "spec.applicationName"},
	} {
		t.Run(name, func(t *testing.T) {
			err := admin.Create(t.Context(), dataObject(t, tc.kind, ns, tc.fields))
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			assert.ErrorContains(t, err, "admission webhook")
			assert.ErrorContains(t, err, tc.message)
		})
	}
}

// C19, S8, S35: there is one default class of a kind, or the user who creates a second is warned.
func TestData_defaultClasses(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	const asDefault = `metadata: {generateName: default-, annotations: {apps.waybill.dev/is-default-class: "true"}}`
	ns := c.Namespace(t)
	readySnapshot(t, admin, ns, "services")
	warned.take()
	require.NoError(t, admin.Create(t.Context(), newRestore(ns, "")))
	assert.Equal(t, []string{"no StatefulApplicationClass is the default one: name one in spec.applicationClassName"}, warned.take())

	for _, kind := range []string{statefulApplicationClass, snapshotClass} {
		first, second, third := dataObject(t, kind, "", `{`+asDefault+`}`), dataObject(t, kind, "", `{`+asDefault+`}`), dataObject(t, kind, "", `{}`)
		require.NoError(t, admin.Create(t.Context(), first))
		assert.Empty(t, warned.take(), "%s: one", kind)
		require.NoError(t, admin.Create(t.Context(), second))
		said := `class "` + first.GetName() + `" is a default class, too: take annotation apps.waybill.dev/is-default-class from one of them`
		assert.Equal(t, []string{said}, warned.take(), "%s: two", kind)
		second.SetLabels(map[string]string{"a": "b"})
		require.NoError(t, admin.Update(t.Context(), second))
		assert.Empty(t, warned.take(), "%s: said already", kind)
		require.NoError(t, admin.Delete(t.Context(), second))

		require.NoError(t, admin.Create(t.Context(), third))
		assert.Empty(t, warned.take(), "%s: no default", kind)
		third.SetAnnotations(first.GetAnnotations())
		require.NoError(t, admin.Update(t.Context(), third))
		assert.Equal(t, []string{said}, warned.take(), "%s: two again", kind)
		require.NoError(t, admin.Delete(t.Context(), third))
		if kind == statefulApplicationClass {
			require.NoError(t, admin.Create(t.Context(), newRestore(c.Namespace(t), ns)))
			assert.Empty(t, warned.take(), "the default is used")
		}
		require.NoError(t, admin.Delete(t.Context(), first))
	}
}
