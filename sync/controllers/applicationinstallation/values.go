package applicationinstallation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	v1alpha1 "waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/content"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render/helm"
)

// readValues merges the values of definition, version and installation, later ones winning
// (C26), and computes the digest of what goes into the installation.
func (d *driver) readValues(ctx context.Context, s *scope) error {
	var layers []map[string]any
	for _, layer := range []struct {
		name string
		json *apiextensionsv1.JSON
	}{
		{"defaultValues of the definition", s.definition.Spec.DefaultValues},
		{"values of version " + s.version.Version, s.version.Template.Values},
	} {
		values, err := fromJSON(layer.json)
		if err != nil {
			return reconcile.Stalled(v1alpha1.InvalidValuesReason, "%s: %w", layer.name, err)
		}
		layers = append(layers, values)
	}
	if s.version.ClusterFacts {
		facts, err := d.clusterFacts(ctx)
		if err != nil {
			return err
		}
		layers = append(layers, facts)
	}
	own, err := d.ownValues(ctx, s.inst)
	if err != nil {
		return err
	}
	s.values = helm.MergeValues(append(layers, own...)...)
	s.digest, err = s.inputDigest()
	return err
}

// ownValues are those of the installation: valuesFrom in their order, below values or
// valuesBlock (C59).
func (d *driver) ownValues(ctx context.Context, inst *v1alpha1.ApplicationInstallation) ([]map[string]any, error) {
	var layers []map[string]any
	for i, from := range inst.Spec.ValuesFrom {
		values, err := d.valuesFrom(ctx, inst.Namespace, from)
		if err != nil {
			return nil, fmt.Errorf("spec.valuesFrom[%d]: %w", i, err)
		}
		layers = append(layers, values)
	}
	values, err := fromJSON(inst.Spec.Values)
	if err != nil {
		return nil, reconcile.Stalled(v1alpha1.InvalidValuesReason, "spec.values: %w", err)
	}
	block := map[string]any{}
	if err := yaml.Unmarshal([]byte(inst.Spec.ValuesBlock), &block); err != nil {
		return nil, reconcile.Stalled(v1alpha1.InvalidValuesReason, "spec.valuesBlock: %w", err)
	}
	return append(layers, values, block), nil
}

func (d *driver) valuesFrom(ctx context.Context, namespace string, from v1alpha1.ValuesReference) (map[string]any, error) {
	kind, key := content.Kind(from.Kind), types.NamespacedName{Namespace: namespace, Name: from.Name}
	if err := d.watching.start(ctx, kind); err != nil {
		return nil, err
	}
	found, err := d.values.Get(ctx, kind, key)
	switch {
	case apierrors.IsNotFound(err) && from.Optional:
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, reconcile.Waiting(v1alpha1.InvalidValuesReason, 0, "%s %s does not exist", kind, key)
	case err != nil:
		return nil, err
	}
	data, ok := found.Data[from.GetKey()]
	if !ok && from.Optional {
		return nil, nil
	}
	if !ok {
		return nil, reconcile.Waiting(v1alpha1.InvalidValuesReason, 0, "%s %s has no key %q", kind, key, from.GetKey())
	}
	values := map[string]any{}
	if yaml.Unmarshal(data, &values) != nil {
		// The parser quotes what it does not understand, which may be a secret.
		return nil, reconcile.Waiting(v1alpha1.InvalidValuesReason, 0, "%s %s: key %q is no YAML object", kind, key, from.GetKey())
	}
	return values, nil
}

// clusterFacts are offered as .Values.waybill.cluster where the version asks for them (C33).
func (d *driver) clusterFacts(ctx context.Context) (map[string]any, error) {
	found := &v1alpha1.KubernetesCluster{}
	if err := d.Hub.Get(ctx, d.cluster.Name(), found); err != nil {
		return nil, fmt.Errorf("read cluster facts: %w", err)
	}
	labels := map[string]any{}
	for name, value := range found.Labels {
		labels[name] = value
	}
	facts := map[string]any{"name": found.Name, "version": found.Status.Version, "labels": labels}
	return map[string]any{"waybill": map[string]any{"cluster": facts}}, nil
}

// inputDigest changes with everything that makes a difference in the cluster. Timeouts,
// history limits and credentials make none.
func (s *scope) inputDigest() (string, error) {
	inputs := []any{
		s.resolved, s.version.Template.Source, s.values, s.namespace(),
		s.options().GetCRDs(), s.options() != nil && s.options().DisableHooks,
	}
	h := sha256.New()
	encoder := json.NewEncoder(h)
	for _, input := range inputs {
		if err := encoder.Encode(input); err != nil {
			return "", reconcile.Stalled(v1alpha1.InvalidValuesReason, "encode values: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func fromJSON(raw *apiextensionsv1.JSON) (map[string]any, error) {
	if raw == nil {
		return nil, nil
	}
	values := map[string]any{}
	return values, json.Unmarshal(raw.Raw, &values)
}
