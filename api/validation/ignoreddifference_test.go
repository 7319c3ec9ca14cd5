package validation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

func TestIgnoreDifferences_areChecked(t *testing.T) {
	pointers := func(list ...string) []v1alpha1.IgnoredDifference {
		return []v1alpha1.IgnoredDifference{{JSONPointers: list}}
	}
	of := func(target v1alpha1.DifferenceTarget) []v1alpha1.IgnoredDifference {
		return []v1alpha1.IgnoredDifference{{Target: &target, JSONPointers: []string{"/spec/replicas"}}}
	}
	many := make([]string, 51)
	for i := range many {
		many[i] = "/spec"
	}
	for name, tc := range map[string]struct {
		list []v1alpha1.IgnoredDifference
		want string // part of the error; empty for none
	}{
		"replicas":                     {pointers("/spec/replicas"), ""},
		"an item of a list":            {pointers("/spec/template/spec/containers/0/image"), ""},
		"one annotation":               {pointers("/metadata/annotations/example.com~1checksum"), ""},
		"an empty key":                 {pointers("/data/"), ""},
		"a mark of another kind":       {pointers("/spec/template/metadata/labels/apps.waybill.dev~1release"), ""},
		"none":                         {pointers(), "Required"},
		"no slash at the start":        {pointers("spec/replicas"), "must be a JSON pointer"},
		"a JSONPath":                   {pointers(".spec.replicas"), "must be a JSON pointer"},
		"an escape that there is not":  {pointers("/data/a~2b"), "must be a JSON pointer"},
		"the document":                 {pointers(""), "must be a JSON pointer"},
		"the name":                     {pointers("/metadata/name"), "identity"},
		"the namespace":                {pointers("/metadata/namespace"), "identity"},
		"the kind":                     {pointers("/kind"), "identity"},
		"the version":                  {pointers("/apiVersion"), "identity"},
		"what the name is in":          {pointers("/metadata"), "identity"},
		"all labels, ours among them":  {pointers("/metadata/labels"), "identity"},
		"all annotations":              {pointers("/metadata/annotations"), "identity"},
		"the owner":                    {pointers("/metadata/annotations/apps.waybill.dev~1owner"), "marks of Waybill"},
		"the label of the owner":       {pointers("/metadata/labels/apps.waybill.dev~1owner-hash"), "marks of Waybill"},
		"too many pointers":            {pointers(many...), "Too many"},
		"too many entries":             {make([]v1alpha1.IgnoredDifference, 51), "Too many"},
		"too long":                     {pointers("/" + strings.Repeat("a", 512)), "Too long"},
		"a regular expression":         {of(v1alpha1.DifferenceTarget{Kind: "Deployment|StatefulSet", Name: "web-.*"}), ""},
		"none, for the core group":     {of(v1alpha1.DifferenceTarget{Group: "^$"}), ""},
		"no regular expression":        {of(v1alpha1.DifferenceTarget{Name: "web-("}), "must be a regular expression"},
		"a selector":                   {of(v1alpha1.DifferenceTarget{LabelSelector: "tier in (web,api),!old"}), ""},
		"no selector":                  {of(v1alpha1.DifferenceTarget{LabelSelector: "tier in"}), "must be a selector"},
		"no selector of annotations":   {of(v1alpha1.DifferenceTarget{AnnotationSelector: "a=b=c=d"}), "must be a selector"},
		"an overlong name":             {of(v1alpha1.DifferenceTarget{Name: strings.Repeat("a", 254)}), "Too long"},
		"an overlong selector":         {of(v1alpha1.DifferenceTarget{LabelSelector: strings.Repeat("a", 1025)}), "Too long"},
		"a key with a slash unescaped": {pointers("/metadata/annotations/apps.waybill.dev/owner"), ""}, // names nothing there is
	} {
		t.Run(name, func(t *testing.T) {
			inst := installation(func(*v1alpha1.ApplicationInstallation) {})
			inst.Spec.IgnoreDifferences = tc.list
			sync := &v1alpha1.GitSync{ObjectMeta: inst.ObjectMeta, Spec: v1alpha1.GitSyncSpec{URL: "https://example.com/a", IgnoreDifferences: tc.list}}
			for _, errs := range []error{
				validation.ValidateApplicationInstallation(inst, nil).ToAggregate(),
				validation.ValidateGitSync(sync, nil).ToAggregate(),
			} {
				if tc.want == "" {
					assert.NoError(t, errs)
					continue
				}
				assert.ErrorContains(t, errs, tc.want)
				assert.ErrorContains(t, errs, "spec.ignoreDifferences")
			}
		})
	}
}
