package webhooks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/render/values/schema"
)

// +kubebuilder:rbac:groups="",namespace=waybill-system,resources=configmaps,verbs=get

const (
	// maxSchemas is how much of the schemas is kept in memory, in objects of a schema; the largest one
	// that is accepted has a quarter.
	maxSchemas = 20_000

	// schemaTimeout bounds how long a decision waits for a schema that is not in memory.
	schemaTimeout = time.Second
)

// valuesSchemas finds the schemas that values are checked against: what one digest names never changes,
// so that each is read and compiled once.
type valuesSchemas struct {
	live client.Reader
	// namespace holds the ConfigMaps with schemas.
	namespace string

	flight singleflight.Group
	// compiling holds one: that takes a processor for up to half a second.
	compiling sync.Mutex

	// compiled has them by digest. One that cannot be used is nil.
	compiled *keyed.Recent[string, *schema.Schema]
}

func newValuesSchemas(live client.Reader, namespace string) *valuesSchemas {
	return &valuesSchemas{live: live, namespace: namespace, compiled: keyed.NewRecent[string, *schema.Schema](maxSchemas)}
}

// of returns the schema of a version; nil if it is not known, which is no reason to refuse anything.
func (s *valuesSchemas) of(ctx context.Context, definition *v1alpha1.ApplicationDefinition, version string) *schema.Schema {
	offered := definition.GetVersion(version)
	if offered == nil {
		return nil
	}
	entry := definition.GetValuesSchema(offered.Version)
	if entry == nil || entry.Digest == "" {
		return nil
	}
	if found, ok := s.compiled.Lookup(entry.Digest); ok {
		return found
	}
	name, digest := definition.Name, entry.Digest
	done := s.flight.DoChan(digest, func() (any, error) { return s.load(name, digest) })
	select {
	case result := <-done:
		if result.Err != nil {
			ctrl.LoggerFrom(ctx).Info("values are not checked: the schema cannot be read", "definition", name, "version", version, "error", result.Err.Error())
			return nil
		}
		return result.Val.(*schema.Schema)
	case <-time.After(schemaTimeout):
	case <-ctx.Done():
	}
	return nil
}

// load reads a schema, and compiles it. It outlives the decision that asks first: others need it, too.
func (s *valuesSchemas) load(definition, digest string) (*schema.Schema, error) {
	ctx, cancel := context.WithTimeout(context.Background(), decisionTimeout)
	defer cancel()
	found := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: s.namespace, Name: schema.ConfigMapName(definition)}
	if err := s.live.Get(ctx, key, found); err != nil {
		return nil, fmt.Errorf("get schemas: %w", err)
	}
	packed, ok := found.BinaryData[digest]
	if !ok {
		return nil, fmt.Errorf("ConfigMap %s does not have it", key)
	}
	s.compiling.Lock()
	defer s.compiling.Unlock()
	encoded, err := schema.Unpack(packed, digest)
	if err != nil {
		return nil, err
	}
	compiled, err := schema.Compile(encoded)
	if err != nil && !errors.Is(err, schema.ErrTooLarge) {
		return nil, err
	}
	weight := 1
	if compiled != nil {
		weight += compiled.Weight
	}
	s.compiled.Put(digest, compiled, int64(weight))
	return compiled, nil
}
