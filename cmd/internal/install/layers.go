package install

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/render/values"
)

// Merged are the values that a chart is rendered with, and where each comes from.
type Merged struct {
	layers []values.Layer
	root   *merged
}

// Values returns the values of an installation, of all layers: the chart's are the lowest.
func (s *Session) Values(ctx context.Context, sources *installation.Sources, inst *v1alpha1.ApplicationInstallation) (*Merged, error) {
	layers, err := s.layers(ctx, sources, inst)
	if err != nil {
		return nil, err
	}
	return &Merged{layers: layers, root: merge(layers)}, nil
}

// Shown returns the values as templates see them, without those of Secrets.
func (m *Merged) Shown() map[string]any { return m.root.shown() }

// Explained returns a line for each value, by name.
func (m *Merged) Explained() []Explained { return m.root.explained(m.layers) }

// Each calls visit for each value that is no map, with the names that lead to it and whether it comes from a Secret.
func (m *Merged) Each(visit func(path []string, value any, secret bool)) {
	m.root.each("", nil, func(_ string, path names, one *merged) { visit(path.all(), one.value, one.secret) })
}

// layers returns the layers of values of an installation, the chart's first.
func (s *Session) layers(ctx context.Context, sources *installation.Sources, inst *v1alpha1.ApplicationInstallation) ([]values.Layer, error) {
	lookup := installation.NewLookup(s.Place)
	lookup.Placed = false // what is installed has values, offered or not
	lookup.Unknown = func(why string) { s.Warn("facts about the cluster are empty: %s", why) }
	resolved, err := lookup.Resolve(ctx, installation.Wish{Installation: inst})
	if err != nil {
		return nil, err
	}
	if resolved.Definition.GetMethod() == v1alpha1.MethodKustomize {
		return nil, errors.New("method kustomize uses no values")
	}
	rest, err := lookup.Layers(ctx, resolved)
	if err != nil {
		return nil, err
	}
	chart, err := sources.Defaults(ctx, resolved)
	if err != nil {
		return nil, err
	}
	return append([]values.Layer{chart}, rest...), nil
}

// merged is a value with the layer that it comes from, or a map of such.
type merged struct {
	value  any
	layer  int
	secret bool
	inner  map[string]*merged // nil for what is no map
}

// merge merges layers as Helm does: maps name by name; what is no map replaces what was there.
func merge(layers []values.Layer) *merged {
	all := &merged{inner: map[string]*merged{}}
	for i, layer := range layers {
		all.take(layer.Values, i, layer.Secret)
	}
	return all
}

func (m *merged) take(from map[string]any, layer int, secret bool) {
	if len(from) == 0 && len(m.inner) == 0 {
		m.layer, m.secret = layer, secret
	}
	for name, value := range from {
		inner, isMap := value.(map[string]any)
		if !isMap {
			m.inner[name] = &merged{value: value, layer: layer, secret: secret}
			continue
		}
		if there := m.inner[name]; there == nil || there.inner == nil {
			m.inner[name] = &merged{inner: map[string]*merged{}}
		}
		m.inner[name].take(inner, layer, secret)
	}
}

// shown returns the values as templates see them: a null removes a value of the chart.
func (m *merged) shown() map[string]any {
	all := map[string]any{}
	for name, one := range m.inner {
		switch {
		case one.inner != nil:
			all[name] = one.shown()
		case one.value == nil && one.layer > 0:
		case one.secret:
			all[name] = mask.Hidden
		default:
			all[name] = one.value
		}
	}
	return all
}

// maxName bounds the name of a value: any number of them may be in one with a long one.
const maxName = 1000

// Explained is a value with where it comes from.
type Explained struct {
	// Name of the value, in the form of a path. One of more than 1,000 bytes is cut.
	Name string `json:"name"`
	// Value is mask.Hidden for one of a Secret.
	Value any `json:"value"`
	// From names the layer.
	From string `json:"from"`

	path names
}

// names lead to a value: those of what it is in, which others share, and its own.
type names struct {
	in  []string
	own string
}

func (n names) all() []string { return append(slices.Clip(n.in), n.own) }

// Path returns the names that lead to the value.
func (e Explained) Path() []string { return e.path.all() }

// Text returns the value in a line.
func (e Explained) Text() string {
	switch value := e.Value.(type) {
	case nil:
		return "null"
	case string:
		if value == "" {
			return `""`
		}
		return value
	}
	return jsonOf(e.Value)
}

// explained returns a line for each value, by name.
func (m *merged) explained(layers []values.Layer) []Explained {
	lines := []Explained{}
	m.each("", nil, func(name string, path names, one *merged) {
		line := Explained{Name: name, Value: one.value, From: layers[one.layer].From, path: path}
		switch {
		case one.inner != nil:
			line.Value = map[string]any{}
		case one.secret:
			line.Value = mask.Hidden
		}
		lines = append(lines, line)
	})
	return lines
}

// each calls visit for each value that is no map, or an empty one, by name.
func (m *merged) each(prefix string, in []string, visit func(string, names, *merged)) {
	for _, name := range slices.Sorted(maps.Keys(m.inner)) {
		one, full, path := m.inner[name], name, names{in, name}
		if strings.ContainsAny(name, ". ") {
			full = jsonOf(name)
		}
		if prefix != "" {
			full = prefix + "." + full
		}
		full = excerpt.Of(full, maxName)
		if len(one.inner) > 0 {
			one.each(full, path.all(), visit)
			continue
		}
		visit(full, path, one)
	}
}
