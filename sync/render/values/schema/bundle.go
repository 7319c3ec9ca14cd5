package schema

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// MaxSize is how large the schemas of a chart and of its subcharts may be together.
const MaxSize = 1 << 20

// ErrTooLarge says that the schemas of a chart are too large, or too complex, to be checked before the
// chart is rendered.
var ErrTooLarge = errors.New("schema is too large to be checked at admission")

// Bundle is the schema of a chart with those of its subcharts.
type Bundle struct {
	// Schema is the values.schema.json of the chart; empty if it has none.
	Schema json.RawMessage `json:"schema,omitempty"`

	// Subcharts are checked on the values below their names.
	Subcharts []Subchart `json:"subcharts,omitempty"`
}

// Subchart is a dependency of a chart.
type Subchart struct {
	// Name under which the chart uses it: its alias, if it has one.
	Name string `json:"name"`

	// Optional says that values decide whether it is used.
	Optional bool `json:"optional,omitempty"`

	// Condition is the path of the value that decides first, if any.
	Condition string `json:"condition,omitempty"`

	Bundle
}

// Empty reports whether there is nothing to check.
func (b *Bundle) Empty() bool {
	return len(b.Schema) == 0 && !slices.ContainsFunc(b.Subcharts, func(s Subchart) bool { return !s.Empty() })
}

// Encode returns the bundle as JSON: the same for the same schemas.
func (b *Bundle) Encode() ([]byte, error) {
	encoded, err := json.Marshal(b.trimmed())
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	if len(encoded) > MaxSize {
		return nil, fmt.Errorf("%w: it has %d bytes, and at most %d are accepted", ErrTooLarge, len(encoded), MaxSize)
	}
	return encoded, nil
}

// trimmed leaves out subcharts without a schema, and sorts the others.
func (b *Bundle) trimmed() Bundle {
	kept := Bundle{Schema: b.Schema}
	for _, sub := range b.Subcharts {
		if !sub.Empty() {
			sub.Bundle = sub.trimmed()
			kept.Subcharts = append(kept.Subcharts, sub)
		}
	}
	slices.SortStableFunc(kept.Subcharts, func(a, b Subchart) int { return cmp.Compare(a.Name, b.Name) })
	return kept
}

// Digest identifies an encoded bundle.
func Digest(encoded []byte) string {
	sum := sha256.Sum256(encoded)
	return "sha256-" + hex.EncodeToString(sum[:])
}

// ConfigMapName returns the name of the ConfigMap that holds the schemas of a definition, packed, by
// digest. It is in the system namespace of the cluster that the definition, or its copy, is in.
func ConfigMapName(definition string) string {
	const prefix, most = "waybill-schemas-", 253
	if len(prefix)+len(definition) <= most {
		return prefix + definition
	}
	sum := sha256.Sum256([]byte(definition))
	return prefix + hex.EncodeToString(sum[:])
}

// ConfigMap returns the ConfigMap with packed schemas, by digest. It goes when the definition, or the
// copy, goes.
func ConfigMap(namespace string, definition metav1.Object, packed map[string][]byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: ConfigMapName(definition.GetName()), Namespace: namespace,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationDefinitionKind,
				Name: definition.GetName(), UID: definition.GetUID(),
			}},
		},
		BinaryData: packed,
	}
}

// Pack compresses an encoded bundle.
func Pack(encoded []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(encoded); err != nil {
		return nil, fmt.Errorf("compress schema: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress schema: %w", err)
	}
	return packed.Bytes(), nil
}

// Unpack returns what was packed, if it has that digest.
func Unpack(packed []byte, digest string) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("decompress schema: %w", err)
	}
	encoded, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompress schema: %w", err)
	case len(encoded) > MaxSize:
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, MaxSize)
	case Digest(encoded) != digest:
		return nil, errors.New("schema is not the one with that digest")
	}
	return encoded, nil
}
