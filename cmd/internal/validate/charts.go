package validate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/render/values/schema"
)

// catalog holds the definitions among the files, and what is known of their charts.
type catalog struct {
	definitions map[string]*v1alpha1.ApplicationDefinition
	schemas     schemaOf
}

// schemaOf returns the schema of the values of a version; nil if there is none.
type schemaOf func(*v1alpha1.ApplicationDefinition, *v1alpha1.ApplicationVersion) (*schema.Schema, error)

// schemasFrom returns a function that reads each chart once.
func schemasFrom(ctx context.Context, sources *installation.Sources) schemaOf {
	type known struct {
		schema *schema.Schema
		err    error
	}
	read := map[string]known{}
	return func(definition *v1alpha1.ApplicationDefinition, version *v1alpha1.ApplicationVersion) (*schema.Schema, error) {
		key := definition.Name + " " + version.Version
		found, ok := read[key]
		if !ok {
			found.schema, found.err = sources.Schema(ctx, definition, version)
			read[key] = found
		}
		return found.schema, found.err
	}
}

// checkValues checks the values of an installation against the schema of its chart, as far as charts are
// to be read.
func (c catalog) checkValues(o *v1alpha1.ApplicationInstallation, definition *v1alpha1.ApplicationDefinition) (field.ErrorList, []string) {
	version := definition.GetVersion(o.Spec.ApplicationRef.Version)
	if c.schemas == nil || version == nil {
		return nil, nil
	}
	known, err := c.schemas(definition, version)
	switch {
	case err != nil:
		return nil, []string{fmt.Sprintf("values are not checked against the schema of the chart: %v", err)}
	case known == nil:
		return nil, nil
	}
	return known.CheckInstallation(o), nil
}
