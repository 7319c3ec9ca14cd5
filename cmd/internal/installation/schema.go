package installation

import (
	"context"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/render/values/schema"
)

// Schema returns the schema that the values of a version are checked against; nil if its chart has none,
// or if it has no chart. Offline, a chart for whose source no folder stands is an error. No credentials
// are used.
func (s *Sources) Schema(ctx context.Context, definition *v1alpha1.ApplicationDefinition, version *v1alpha1.ApplicationVersion) (*schema.Schema, error) {
	if definition.GetMethod() != v1alpha1.MethodHelm || version.Template == nil {
		return nil, nil
	}
	found, err := s.chart(ctx, &Resolved{Definition: definition, Version: version})
	if err != nil {
		return nil, err
	}
	bundle := helm.Schemas(found.Chart)
	if bundle.Empty() {
		return nil, nil
	}
	encoded, err := bundle.Encode()
	if err != nil {
		return nil, err
	}
	return schema.Compile(encoded)
}
