package validate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"waybill.dev/waybill/charts"
)

// kindSchema checks objects of one kind as an API server does.
type kindSchema struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// schemas are those of all our kinds, from the CustomResourceDefinitions that this program was
// built with.
type schemas map[runtimeschema.GroupVersionKind]*kindSchema

var loadSchemas = sync.OnceValues(func() (schemas, error) {
	crds, err := charts.CRDs()
	if err != nil {
		return nil, err
	}
	all := schemas{}
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			s, err := newKindSchema(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, fmt.Errorf("read schema of %s: %w", crd.Spec.Names.Kind, err)
			}
			all[runtimeschema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = s
		}
	}
	return all, nil
})

func newKindSchema(v1 *apiextensionsv1.JSONSchemaProps) (*kindSchema, error) {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, props, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(props)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	return &kindSchema{
		structural: structural,
		validator:  validator,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// find returns the schema of a kind.
func (s schemas) find(gvk runtimeschema.GroupVersionKind) (*kindSchema, error) {
	if found, ok := s[gvk]; ok {
		return found, nil
	}
	var names []string
	for other := range maps.Keys(s) {
		if other.Kind == gvk.Kind {
			return nil, fmt.Errorf("no version %s of %s: write %s", gvk.Version, gvk.Kind, other.GroupVersion())
		}
		names = append(names, other.Kind)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("no kind %s in %s: the kinds are %s", gvk.Kind, gvk.Group, strings.Join(names, ", "))
}

// check fills in the defaults and returns what an API server would reject, including unknown
// fields.
func (s *kindSchema) check(ctx context.Context, object map[string]any) field.ErrorList {
	var errs field.ErrorList
	unknown := pruning.PruneWithOptions(object, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range append(unknown, unknownMetadata(object)...) {
		errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: path, Detail: "there is no such field"})
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
	errs = append(errs, validation.ValidateCustomResource(nil, object, s.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if slices.ContainsFunc(errs, shapeless) {
		return errs
	}
	broken, _ := s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// unknownMetadata returns the unknown fields of the metadata, which the schema says nothing about.
// Metadata that cannot be read at all is found when the object is decoded.
func unknownMetadata(object map[string]any) []string {
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil
	}
	return unknown
}

// shapeless reports whether an error leaves an object in a shape that rules cannot be evaluated
// for; API servers evaluate none then.
func shapeless(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}
