package schema

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apivalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Schemas are those of a set of CustomResourceDefinitions. They are safe for concurrent use.
type Schemas struct {
	kinds map[schema.GroupVersionKind]*kind
}

type kind struct {
	structural *structuralschema.Structural
	openAPI    apivalidation.SchemaValidator
	rules      *cel.Validator
}

// New reads CustomResourceDefinitions, one YAML document each.
func New(crds ...[]byte) (*Schemas, error) {
	s := &Schemas{kinds: map[schema.GroupVersionKind]*kind{}}
	for _, raw := range crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return nil, fmt.Errorf("decode CustomResourceDefinition: %w", err)
		}
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			k, err := compile(v)
			if err != nil {
				return nil, fmt.Errorf("compile schema of %s %s: %w", crd.Name, v.Name, err)
			}
			s.kinds[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = k
		}
	}
	return s, nil
}

// Knows says whether there is a schema for the kind.
func (s *Schemas) Knows(gvk schema.GroupVersionKind) bool { return s.kinds[gvk] != nil }

// Validate returns what the API server would say of obj, when it replaces old or, where old is
// nil, when it is created. Unknown fields are errors, as they are for kubectl. A kind without a
// schema is an error. Neither object is changed.
func (s *Schemas) Validate(ctx context.Context, obj, old *unstructured.Unstructured) field.ErrorList {
	k := s.kinds[obj.GroupVersionKind()]
	if k == nil {
		return field.ErrorList{field.NotSupported(field.NewPath("kind"), obj.GetKind(), s.names())}
	}
	content := obj.DeepCopy().Object
	errs := k.unknownFields(content)
	defaulting.PruneNonNullableNullsWithoutDefaults(content, k.structural)
	defaulting.Default(content, k.structural)

	var before map[string]any
	if old != nil {
		before = old.DeepCopy().Object
		defaulting.Default(before, k.structural)
		errs = append(errs, apivalidation.ValidateCustomResourceUpdate(nil, content, before, k.openAPI)...)
	} else {
		errs = append(errs, apivalidation.ValidateCustomResource(nil, content, k.openAPI)...)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, content)...)
	if len(errs) > 0 || k.rules == nil {
		return errs // rules are written for objects of the right shape, and the API server does the same
	}
	var previous any
	if before != nil {
		previous = before
	}
	broken, _ := k.rules.Validate(ctx, nil, k.structural, content, previous, celconfig.RuntimeCELCostBudget)
	return broken
}

func (s *Schemas) names() []string {
	names := make([]string, 0, len(s.kinds))
	for gvk := range s.kinds {
		names = append(names, gvk.Kind)
	}
	return names
}

func (k *kind) unknownFields(content map[string]any) field.ErrorList {
	var errs field.ErrorList
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(content, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		errs = append(errs, field.Invalid(field.NewPath("metadata"), field.OmitValueType{}, err.Error()))
	}
	unknown = append(unknown, pruning.PruneWithOptions(content, k.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	for _, path := range unknown {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	return errs
}

func compile(v *apiextensionsv1.CustomResourceDefinitionVersion) (*kind, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("version %s has no schema", v.Name)
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	validator, _, err := apivalidation.NewSchemaValidator(internal)
	if err != nil {
		return nil, err
	}
	return &kind{
		structural: structural,
		openAPI:    validator,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}
