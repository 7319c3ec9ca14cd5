package isolated

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"waybill.dev/waybill/sync/render/helm"
)

// packed are values as they are sent: one after the other, each followed by those in it. Sent as they
// are, what is nested would be copied once for each level that it is in.
type packed []node

// node is a value of YAML or JSON: what its kind says.
type node struct {
	Kind kindOfValue
	// Key is that of a value in a map.
	Key string
	// Len is how many values a map or a list has.
	Len     int
	Text    string
	Int     int64
	Uint    uint64
	Float   float64
	Boolean bool
}

type kindOfValue uint8

const (
	nullValue kindOfValue = iota
	mapValue
	listValue
	textValue
	boolValue
	intValue
	int64Value
	uint64Value
	floatValue
	numberValue
)

// nodeBytes is about how many bytes a value takes beside its texts.
const nodeBytes = 16

// packMap packs values, whose types are those of YAML and JSON; nil for nil.
func packMap(values map[string]any) (packed, error) {
	if values == nil {
		return nil, nil
	}
	return packed(nil).add("", values)
}

// add appends a value, and all that it holds.
func (p packed) add(key string, value any) (_ packed, err error) {
	n := node{Key: key}
	switch v := value.(type) {
	case nil:
	case map[string]any:
		n.Kind, n.Len = mapValue, len(v)
		p = append(p, n)
		for _, inner := range slices.Sorted(maps.Keys(v)) {
			if p, err = p.add(inner, v[inner]); err != nil {
				return nil, err
			}
		}
		return p, nil
	case []any:
		n.Kind, n.Len = listValue, len(v)
		p = append(p, n)
		for _, inner := range v {
			if p, err = p.add("", inner); err != nil {
				return nil, err
			}
		}
		return p, nil
	case string:
		n.Kind, n.Text = textValue, v
	case bool:
		n.Kind, n.Boolean = boolValue, v
	case int:
		n.Kind, n.Int = intValue, int64(v)
	case int64:
		n.Kind, n.Int = int64Value, v
	case uint64:
		n.Kind, n.Uint = uint64Value, v
	case float64:
		n.Kind, n.Float = floatValue, v
	case json.Number:
		n.Kind, n.Text = numberValue, string(v)
	default:
		return nil, fmt.Errorf("%w: a value of type %T is not supported", helm.ErrInvalidValues, v)
	}
	return append(p, n), nil
}

// unpackMap undoes packMap. Anything else becomes no values.
func (p packed) unpackMap() map[string]any {
	values, _ := p.take().(map[string]any)
	return values
}

// take takes the first value, and all that it holds, from p.
func (p *packed) take() any {
	if len(*p) == 0 {
		return nil
	}
	n := (*p)[0]
	*p = (*p)[1:]
	switch n.Kind {
	case mapValue:
		values := map[string]any{}
		for range n.Len {
			if len(*p) == 0 {
				break
			}
			key := (*p)[0].Key
			values[key] = p.take()
		}
		return values
	case listValue:
		values := []any{}
		for range min(n.Len, len(*p)) {
			values = append(values, p.take())
		}
		return values
	case textValue:
		return n.Text
	case boolValue:
		return n.Boolean
	case intValue:
		return int(n.Int)
	case int64Value:
		return n.Int
	case uint64Value:
		return n.Uint
	case floatValue:
		return n.Float
	case numberValue:
		return json.Number(n.Text)
	default:
		return nil
	}
}

// size returns about how many bytes the values take.
func (p packed) size() int {
	total := nodeBytes * len(p)
	for _, n := range p {
		total += len(n.Key) + len(n.Text)
	}
	return total
}
