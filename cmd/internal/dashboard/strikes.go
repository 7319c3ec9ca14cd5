package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/install"
	"waybill.dev/waybill/cmd/internal/mask"
)

// partLength is how long a secret value has to be for it to be found within other texts. What is shorter is
// hidden where it is all that a field has.
const partLength = 6

// maxStrikes is how long secret values may be together that are looked for, in bytes. Where they are longer, every text is hidden.
const maxStrikes = 256 << 10

// strikes are values that are not to be shown, wherever a chart has put them. What charts compute from them is not known.
type strikes struct {
	whole map[string]bool
	parts []string
	bytes int // of parts
	// finder finds the parts; nil if one was added since it was made.
	finder *finder
}

// add adds a value, or each that it has.
func (s *strikes) add(value any) {
	switch v := value.(type) {
	case nil, bool:
	case map[string]any:
		for _, below := range v {
			s.add(below)
		}
	case []any:
		for _, below := range v {
			s.add(below)
		}
	case string:
		s.text(v)
		for line := range strings.Lines(v) { // each may be indented elsewhere
			if line = strings.TrimSpace(line); len(line) >= partLength {
				s.text(line)
			}
		}
	default:
		s.text(written(v))
	}
}

func (s *strikes) text(text string) {
	if text == "" || s.whole[text] {
		return
	}
	if s.whole == nil {
		s.whole = map[string]bool{}
	}
	s.whole[text] = true
	if len(text) >= partLength {
		s.parts, s.bytes, s.finder = append(s.parts, text), s.bytes+len(text), nil
	}
}

// tooMany reports whether there are more than are looked for: every text is hidden.
func (s *strikes) tooMany() bool { return s.bytes > maxStrikes }

// written returns a number as manifests have it.
func written(number any) string {
	text, err := json.Marshal(number)
	if err != nil {
		return fmt.Sprint(number)
	}
	return string(text)
}

// from returns a text without them.
func (s *strikes) from(text string) string {
	if text != "" && (s.whole[text] || s.tooMany()) {
		return mask.Hidden
	}
	if len(s.parts) == 0 {
		return text
	}
	if s.finder == nil {
		s.finder = newFinder(s.parts)
	}
	return s.finder.replace(text, mask.Hidden)
}

// in takes them out of a manifest. What it is, and is called, stays.
func (s *strikes) in(manifest map[string]any) {
	if len(s.whole) == 0 {
		return
	}
	for key, value := range manifest {
		switch key {
		case "apiVersion", "kind":
		case "metadata":
			meta, _ := value.(map[string]any)
			for name, below := range meta {
				if name != "name" && name != "namespace" {
					meta[name] = s.of(below)
				}
			}
		default:
			manifest[key] = s.of(value)
		}
	}
}

func (s *strikes) of(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			v[name] = s.of(below)
		}
	case []any:
		for i, below := range v {
			v[i] = s.of(below)
		}
	case string:
		return s.from(v)
	case int64, float64:
		if s.tooMany() || s.whole[written(v)] {
			return mask.Hidden
		}
	}
	return value
}

// strike has the curtain hide, wherever they are, the values of an installation that its chart marks as secret or that come from
// Secrets. Where they are not known, nothing is rendered with them either.
func (s *server) strike(ctx context.Context, c *curtain, at fleet.Place, inst *v1alpha1.ApplicationInstallation) {
	hides := c.version(inst.Spec.ApplicationRef.Name, inst.Spec.ApplicationRef.Version)
	if own, err := install.OwnValues(inst); err == nil {
		hides.secrets(own, nil, c.strikes.add)
	}
	shared, err := s.sources.open()
	if err != nil {
		return
	}
	engine, err := install.NewSession(at)
	if err != nil {
		return
	}
	merged, err := engine.Values(ctx, shared, inst)
	if err != nil {
		return
	}
	merged.Each(func(path []string, value any, secret bool) {
		if secret {
			c.strikes.add(value)
			return
		}
		hides.secrets(value, path, c.strikes.add)
	})
}
