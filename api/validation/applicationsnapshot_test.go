package validation_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

var ofShop = metav1.ObjectMeta{Namespace: "shop", Name: "mongo"}

// S39, S40, S41
func TestValidateApplicationSnapshot(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		edit   func(*v1alpha1.ApplicationSnapshotSpec)
		want   field.ErrorList
	}{
		"valid":       {"S37", func(*v1alpha1.ApplicationSnapshotSpec) {}, nil},
		"tags":        {"free text", func(s *v1alpha1.ApplicationSnapshotSpec) { s.Tags = map[string]string{"mongo version": "4.0 (old)"} }, nil},
		"tag, no key": {"nobody could ask for it", func(s *v1alpha1.ApplicationSnapshotSpec) { s.Tags = map[string]string{"": "a"} }, field.ErrorList{field.Invalid(spec.Child("tags"), "", "")}},
		"tag, long":   {"tags are no place for data", func(s *v1alpha1.ApplicationSnapshotSpec) { s.Tags = map[string]string{"a": strings.Repeat("v", 1025)} }, field.ErrorList{field.TooLong(spec.Child("tags").Key("a"), "", 1024)}},
		"key, long":   {"likewise", func(s *v1alpha1.ApplicationSnapshotSpec) { s.Tags = map[string]string{strings.Repeat("k", 318): ""} }, field.ErrorList{field.TooLong(spec.Child("tags"), "", 317)}},
		"class":       {"no object has that name", func(s *v1alpha1.ApplicationSnapshotSpec) { s.SnapshotClassName = "A" }, field.ErrorList{field.Invalid(spec.Child("snapshotClassName"), "A", "")}},
		"application": {"no object has that name", func(s *v1alpha1.ApplicationSnapshotSpec) { s.Source.ApplicationName = "a/b" }, field.ErrorList{field.Invalid(spec.Child("source", "applicationName"), "a/b", "")}},
		"content":     {"no object has that name", func(s *v1alpha1.ApplicationSnapshotSpec) { s.SnapshotContentName = "A" }, field.ErrorList{field.Invalid(spec.Child("snapshotContentName"), "A", "")}},
		"filter": {"of unknown operators", func(s *v1alpha1.ApplicationSnapshotSpec) {
			s.PersistentVolumeClaimFilter = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}, field.ErrorList{field.Invalid(spec.Child("persistentVolumeClaimFilter", "matchLabels"), "a b", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &v1alpha1.ApplicationSnapshot{ObjectMeta: ofShop, Spec: v1alpha1.ApplicationSnapshotSpec{
				SnapshotClassName: "mongo", Source: v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "mongo"},
			}}
			tc.edit(&obj.Spec)
			assertErrors(t, tc.want, validation.ValidateApplicationSnapshot(obj), tc.reason)
		})
	}
}

// S55, S57, S59, S62, S63
func TestValidateApplicationSnapshotClass(t *testing.T) {
	db := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	hook := func(name, container string, filter *metav1.LabelSelector) v1alpha1.HookSpec {
		return v1alpha1.HookSpec{Name: name, Container: container, PodFilter: filter, ActionName: "lock"}
	}
	for name, tc := range map[string]struct {
		reason string
		class  v1alpha1.ApplicationSnapshotClass
		want   field.ErrorList
	}{
		"valid": {"one pre-hook and one post-hook", v1alpha1.ApplicationSnapshotClass{
			PreHooks: []v1alpha1.HookSpec{hook("lock", "", nil)}, PostHooks: []v1alpha1.HookSpec{hook("unlock", "", nil)}}, nil},
		"other Pods":       {"two containers", v1alpha1.ApplicationSnapshotClass{PreHooks: []v1alpha1.HookSpec{hook("a", "", db), hook("b", "", web)}}, nil},
		"other containers": {"two containers", v1alpha1.ApplicationSnapshotClass{PreHooks: []v1alpha1.HookSpec{hook("a", "x", db), hook("b", "y", db)}}, nil},
		"same Pods":        {"S59", v1alpha1.ApplicationSnapshotClass{PreHooks: []v1alpha1.HookSpec{hook("a", "x", db), hook("b", "x", db.DeepCopy())}}, field.ErrorList{field.Invalid(field.NewPath("preHooks").Index(1), "b", "")}},
		"one for all":      {"S59", v1alpha1.ApplicationSnapshotClass{PostHooks: []v1alpha1.HookSpec{hook("a", "", db), hook("b", "", &metav1.LabelSelector{})}}, field.ErrorList{field.Invalid(field.NewPath("postHooks").Index(1), "b", "")}},
		"filter": {"no key", v1alpha1.ApplicationSnapshotClass{PreHooks: []v1alpha1.HookSpec{hook("a", "", &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}})}},
			field.ErrorList{field.Invalid(field.NewPath("preHooks").Index(0).Child("podFilter", "matchLabels"), "a b", "")}},
		"parameters":          {"S57: Waybill would not act on them", v1alpha1.ApplicationSnapshotClass{Parameters: map[string]string{"a": "b"}}, field.ErrorList{field.Forbidden(field.NewPath("parameters"), "")}},
		"others' parameters":  {"S57: they are passed through", v1alpha1.ApplicationSnapshotClass{Snapshotter: "other.example.com", Parameters: map[string]string{"a": "b"}}, nil},
		"classes":             {"names of objects", v1alpha1.ApplicationSnapshotClass{VolumeSnapshotClassNames: map[string]string{"fast": "F"}}, field.ErrorList{field.Invalid(field.NewPath("volumeSnapshotClassNames").Key("fast"), "F", "")}},
		"classes of no class": {"a StorageClass has a name", v1alpha1.ApplicationSnapshotClass{VolumeGroupSnapshotClassNames: map[string]string{"": "f"}}, field.ErrorList{field.Invalid(field.NewPath("volumeGroupSnapshotClassNames").Key(""), "", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			class := tc.class.DeepCopy()
			class.Name = "mongo"
			if class.Snapshotter == "" {
				class.Snapshotter = v1alpha1.DataHandler
			}
			assertErrors(t, tc.want, validation.ValidateApplicationSnapshotClass(class), tc.reason)
		})
	}
}

// S30, S32, S33
func TestValidateStatefulApplicationClass(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		class  v1alpha1.StatefulApplicationClass
		want   field.ErrorList
	}{
		"valid":              {"S33", v1alpha1.StatefulApplicationClass{Handler: v1alpha1.DataHandler, StorageClassMapping: map[string]string{"fast": "slow"}}, nil},
		"parameters":         {"S32: Waybill would not act on them", v1alpha1.StatefulApplicationClass{Handler: v1alpha1.DataHandler, Parameters: map[string]string{"a": "b"}}, field.ErrorList{field.Forbidden(field.NewPath("parameters"), "")}},
		"others' parameters": {"S32: they are passed through", v1alpha1.StatefulApplicationClass{Handler: "other.example.com", Parameters: map[string]string{"a": "b"}}, nil},
		"to none":            {"a StorageClass has a name", v1alpha1.StatefulApplicationClass{Handler: v1alpha1.DataHandler, StorageClassMapping: map[string]string{"fast": ""}}, field.ErrorList{field.Required(field.NewPath("storageClassMapping").Key("fast"), "")}},
	} {
		t.Run(name, func(t *testing.T) {
			class := tc.class.DeepCopy()
			class.Name = "mongo"
			assertErrors(t, tc.want, validation.ValidateStatefulApplicationClass(class), tc.reason)
		})
	}
}

// S68, S69, S71
func TestValidateApplicationSnapshotContent(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.ApplicationSnapshotContentSpec
		want   field.ErrorList
	}{
		"valid": {"bound to one that is to come", v1alpha1.ApplicationSnapshotContentSpec{SnapshotRef: &v1alpha1.NamespacedReference{Namespace: "a", Name: "b"},
			VolumeSnapshotRefs: map[string]v1alpha1.NamespacedReference{"data-mongo-0": {Namespace: "a", Name: "b"}}}, nil},
		"snapshot": {"no such namespace", v1alpha1.ApplicationSnapshotContentSpec{SnapshotRef: &v1alpha1.NamespacedReference{Namespace: "a.b", Name: "b"}},
			field.ErrorList{field.Invalid(spec.Child("snapshotRef", "namespace"), "a.b", "")}},
		"claim": {"no such claim", v1alpha1.ApplicationSnapshotContentSpec{VolumeSnapshotRefs: map[string]v1alpha1.NamespacedReference{"A": {Namespace: "a", Name: "b"}}},
			field.ErrorList{field.Invalid(spec.Child("volumeSnapshotRefs").Key("A"), "A", "")}},
		"volume": {"no such VolumeSnapshot", v1alpha1.ApplicationSnapshotContentSpec{VolumeSnapshotRefs: map[string]v1alpha1.NamespacedReference{"a": {Namespace: "a", Name: "B"}}},
			field.ErrorList{field.Invalid(spec.Child("volumeSnapshotRefs").Key("a").Child("name"), "B", "")}},
		"definitions": {"no such Secret", v1alpha1.ApplicationSnapshotContentSpec{MetadataHandle: &v1alpha1.MetadataHandle{Object: &v1alpha1.ObjectHandle{Name: "../a"}}},
			field.ErrorList{field.Invalid(spec.Child("metadataHandle", "object", "name"), "../a", "")}},
		"tags": {"as those of the snapshot", v1alpha1.ApplicationSnapshotContentSpec{Tags: map[string]string{"": ""}}, field.ErrorList{field.Invalid(spec.Child("tags"), "", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.spec.SnapshotClassName = "mongo"
			obj := &v1alpha1.ApplicationSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "mongo"}, Spec: tc.spec}
			assertErrors(t, tc.want, validation.ValidateApplicationSnapshotContent(obj), tc.reason)
		})
	}
}

// S9, S27, S28, S77
func TestValidateDataSource(t *testing.T) {
	ref := spec.Child("source", "snapshotRef")
	for name, tc := range map[string]struct {
		reason string
		source v1alpha1.DataSource
		want   field.ErrorList
	}{
		"elsewhere": {"S28", v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Namespace: "ns1", Name: "a"}}, nil},
		"namespace": {"no such namespace", v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Namespace: "a.b", Name: "a"}},
			field.ErrorList{field.Invalid(ref.Child("namespace"), "a.b", "")}},
		"name": {"no such object", v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: "A"}},
			field.ErrorList{field.Invalid(ref.Child("name"), "A", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.StatefulApplication{ObjectMeta: ofShop, Spec: v1alpha1.StatefulApplicationSpec{Source: &tc.source}}
			assertErrors(t, tc.want, validation.ValidateStatefulApplication(app), tc.reason)
			rollback := &v1alpha1.ApplicationRollback{ObjectMeta: ofShop,
				Spec: v1alpha1.ApplicationRollbackSpec{SnapshotClassName: "mongo", ApplicationName: "mongo", Source: tc.source}}
			assertErrors(t, tc.want, validation.ValidateApplicationRollback(rollback), tc.reason)
		})
	}
}
