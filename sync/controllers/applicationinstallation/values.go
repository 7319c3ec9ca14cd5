package applicationinstallation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render/values"
)

// readValues merges all values but those of the chart, and computes the digest of what goes
// into the installation.
func (d *driver) readValues(ctx context.Context, s *scope) error {
	var err error
	from := &valuesSource{driver: d}
	s.values, err = values.Of(ctx, values.Input{
		Definition: s.definition, Version: s.source.version, Installation: s.inst, Account: s.resolved.ServiceAccountName,
	}, from)
	var invalid *values.InvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Unprotected: // its watch reports when it is labelled
		return reconcile.Stalled(v1alpha1.UnprotectedValuesReason, "%w", err)
	case errors.As(err, &invalid) && invalid.Elsewhere:
		return reconcile.Waiting(v1alpha1.InvalidValuesReason, 0, "%w", err)
	case errors.As(err, &invalid):
		return reconcile.Stalled(v1alpha1.InvalidValuesReason, "%w", err)
	case err != nil:
		return err
	}
	s.optional = from.optional(s.inst)
	s.digest, err = s.inputDigest()
	return err
}

// valuesSource reads Secrets and ConfigMaps of the user cluster, which are watched from then on,
// and what the hub knows about the cluster.
type valuesSource struct {
	*driver
	// found are the objects that there are, as status.optionalValues has them.
	found []string
}

// Data implements values.Source.
func (v *valuesSource) Data(ctx context.Context, kind string, name types.NamespacedName) (*values.Object, error) {
	read := v.driver.values.Get
	known, err := v.watching[content.Kind(kind)].watch()
	if err != nil {
		return nil, err
	}
	if !known {
		read = v.driver.values.Fetch
	}
	found, err := read(ctx, content.Kind(kind), name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.found = append(v.found, kind+"/"+name.Name)
	return &values.Object{Data: found.Data, Protected: values.IsProtected(found.Labels)}, nil
}

// Cluster implements values.Source.
func (v *valuesSource) Cluster(ctx context.Context) (*v1alpha1.KubernetesCluster, error) {
	found := &v1alpha1.KubernetesCluster{}
	return found, v.Hub.Get(ctx, v.cluster.Name(), found)
}

// optional returns the optional objects of an installation that there are.
func (v *valuesSource) optional(inst *v1alpha1.ApplicationInstallation) []string {
	var found []string
	for _, reference := range inst.Spec.ValuesFrom {
		name := reference.Kind + "/" + reference.Name
		if reference.Optional && slices.Contains(v.found, name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// inputDigest returns a digest that changes with everything that makes a difference in the cluster.
// Timeouts, history limits and credentials make none.
func (s *scope) inputDigest() (string, error) {
	inputs := []any{
		s.resolved, s.source.version.Template.Source, s.values, s.namespace(),
		s.options().GetCRDs(), s.options() != nil && s.options().DisableHooks,
	}
	if s.lookup() {
		inputs = append(inputs, "lookup")
	}
	if ignored := s.inst.Spec.IgnoreDifferences; len(ignored) > 0 {
		inputs = append(inputs, ignored)
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
