package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/values/schema"
)

// storing is an API server that has schemas, and counts who asks.
type storing struct {
	client.Reader
	packed map[string][]byte
	asked  atomic.Int32
	hold   chan struct{} // until it is closed, nothing is answered; nil for at once
}

func (s *storing) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.asked.Add(1)
	if s.hold != nil {
		<-s.hold
	}
	o.(*corev1.ConfigMap).BinaryData = s.packed
	return nil
}

// published returns a definition with a version for each schema, and the API server that has them.
func published(t *testing.T, texts ...string) (*v1alpha1.ApplicationDefinition, *storing) {
	t.Helper()
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	stored := &storing{packed: map[string][]byte{}}
	for n, text := range texts {
		encoded, err := (&schema.Bundle{Schema: json.RawMessage(text)}).Encode()
		require.NoError(t, err)
		packed, err := schema.Pack(encoded)
		require.NoError(t, err)
		version := fmt.Sprintf("%d.0.0", n)
		stored.packed[schema.Digest(encoded)] = packed
		d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{Version: version})
		d.Status.ValuesSchemas = append(d.Status.ValuesSchemas, v1alpha1.ValuesSchema{Version: version, Digest: schema.Digest(encoded)})
	}
	return d, stored
}

// C50: a schema is read once; after that, a decision is from memory, and takes no longer than the rest.
func TestValuesSchemas_areReadOnce(t *testing.T) {
	d, stored := published(t, `{"properties": {"a": {"type": "string"}}}`)
	s := newValuesSchemas(stored, "")
	first := s.of(t.Context(), d, "0.0.0")
	require.NotNil(t, first)
	assert.Same(t, first, s.of(t.Context(), d, "0.0.0"))
	assert.EqualValues(t, 1, stored.asked.Load())
	assert.Nil(t, s.of(t.Context(), d, "9.9.9"))
	begun := time.Now()
	for range 1000 {
		_, err := s.of(t.Context(), d, "0.0.0").Check(map[string]any{"a": "x", "b": map[string]any{"c": []any{1, 2}}})
		require.NoError(t, err)
	}
	assert.Less(t, time.Since(begun), 2*time.Second, "1000 decisions")
}

// What schemas take in memory is bounded: those that were not used for longest are read again.
func TestValuesSchemas_memory(t *testing.T) {
	var texts []string
	for n := range 12 {
		properties := map[string]any{}
		for p := range 4000 {
			properties[fmt.Sprintf("p%d-%d", n, p)] = map[string]any{}
		}
		text, err := json.Marshal(map[string]any{"properties": properties})
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	d, stored := published(t, texts...)
	s := newValuesSchemas(stored, "")
	for n := range texts {
		for _, version := range []string{fmt.Sprintf("%d.0.0", n), "0.0.0"} { // one is used all the time
			require.Eventually(t, func() bool { return s.of(t.Context(), d, version) != nil }, time.Minute, 10*time.Millisecond)
		}
	}
	kept := 0
	for _, entry := range d.Status.ValuesSchemas {
		if _, found := s.compiled.Lookup(entry.Digest); found {
			kept++
		}
	}
	assert.LessOrEqual(t, kept*4000, maxSchemas)
	assert.EqualValues(t, len(texts), stored.asked.Load(), "what is used stays")
}

// A schema that takes long to read keeps no request waiting, and is there for later ones.
func TestValuesSchemas_keepNobodyWaiting(t *testing.T) {
	d, stored := published(t, `{"type": "object"}`)
	stored.hold = make(chan struct{})
	s := newValuesSchemas(stored, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Nil(t, s.of(ctx, d, "0.0.0"))
	assert.Nil(t, s.of(t.Context(), d, "0.0.0"), "after a second")
	close(stored.hold)
	require.Eventually(t, func() bool { return s.of(t.Context(), d, "0.0.0") != nil }, 10*time.Second, 10*time.Millisecond)
	assert.EqualValues(t, 1, stored.asked.Load(), "one asks for all")
}
