package applicationinstallation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/content"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/values"
)

// readValues merges all values but those of the chart (C26), and computes the digest of what goes
// into the installation.
func (d *driver) readValues(ctx context.Context, s *scope) error {
	var err error
	s.values, err = values.Of(ctx, values.Input{Definition: s.definition, Version: s.version, Installation: s.inst}, valuesSource{d})
	var invalid *values.InvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Elsewhere:
		return reconcile.Waiting(v1alpha1.InvalidValuesReason, 0, "%w", err)
	case errors.As(err, &invalid):
		return reconcile.Stalled(v1alpha1.InvalidValuesReason, "%w", err)
	case err != nil:
		return err
	}
	s.digest, err = s.inputDigest()
	return err
}

// valuesSource reads Secrets and ConfigMaps of the user cluster, which are watched from then on,
// and what the hub knows about the cluster.
type valuesSource struct{ *driver }

// Data implements values.Source.
func (v valuesSource) Data(ctx context.Context, kind string, name types.NamespacedName) (map[string][]byte, bool, error) {
	read := v.driver.values.Get
	known, err := v.watching.start(content.Kind(kind))
	if err != nil {
		return nil, false, err
	}
	if !known {
		read = v.driver.values.Fetch
	}
	found, err := read(ctx, content.Kind(kind), name)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return found.Data, true, nil
}

// Cluster implements values.Source.
func (v valuesSource) Cluster(ctx context.Context) (*v1alpha1.KubernetesCluster, error) {
	found := &v1alpha1.KubernetesCluster{}
	return found, v.Hub.Get(ctx, v.cluster.Name(), found)
}

// inputDigest returns a digest that changes with everything that makes a difference in the cluster.
// Timeouts, history limits and credentials make none.
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
