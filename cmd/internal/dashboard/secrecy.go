package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/install"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/sync/render/values"
	"waybill.dev/waybill/sync/render/values/schema"
)

// secrecy hides what a chart marks as secret of its values: by writeOnly, or format password. The zero value hides
// nothing.
type secrecy struct {
	// schemas of the versions that values are for: what one of them marks is hidden.
	schemas []*schema.Schema
	// all hides every value: it is not known which are secret.
	all bool
}

// secrecyBy returns what hides what a schema marks; nil marks nothing.
func secrecyBy(s *schema.Schema) secrecy {
	if s == nil {
		return secrecy{}
	}
	return secrecy{schemas: []*schema.Schema{s}}
}

// first returns the schema of the version that is wanted; nil if there is none.
func (c secrecy) first() *schema.Schema {
	if len(c.schemas) == 0 {
		return nil
	}
	return c.schemas[0]
}

func (c secrecy) idle() bool { return len(c.schemas) == 0 && !c.all }

// with hides what either hides.
func (c secrecy) with(other secrecy) secrecy {
	return secrecy{schemas: slices.Concat(c.schemas, other.schemas), all: c.all || other.all}
}

// marks reports whether a chart marks the value at a path, or one that it is in.
func (c secrecy) marks(path []string) bool {
	return len(path) > 0 && slices.ContainsFunc(c.schemas, func(s *schema.Schema) bool { return s.Secret(path) })
}

// of returns a copy of a value at a path, with what is secret hidden.
func (c secrecy) of(value any, path []string) any {
	if value == nil || c.idle() {
		return value
	}
	if c.marks(path) {
		return mask.Hidden
	}
	switch v := value.(type) {
	case map[string]any:
		hidden := make(map[string]any, len(v))
		for name, below := range v {
			hidden[name] = c.of(below, append(path[:len(path):len(path)], name))
		}
		return hidden
	case []any:
		hidden := make([]any, len(v))
		for i, below := range v {
			hidden[i] = c.of(below, append(path[:len(path):len(path)], schema.Item))
		}
		return hidden
	}
	if c.all {
		return mask.Hidden
	}
	return value
}

// secrets calls tell for each value at or below a path that is hidden.
func (c secrecy) secrets(value any, path []string, tell func(any)) {
	if c.marks(path) {
		tell(value)
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			c.secrets(below, append(path[:len(path):len(path)], name), tell)
		}
	case []any:
		for _, below := range v {
			c.secrets(below, append(path[:len(path):len(path)], schema.Item), tell)
		}
	}
}

// values returns a copy of values, with what is secret hidden.
func (c secrecy) values(all map[string]any) map[string]any {
	hidden, _ := c.of(all, nil).(map[string]any) // it is one, as it was before
	return hidden
}

// reveal puts what was set before in place of what was hidden. It is an error if nothing was set there.
func (c secrecy) reveal(edited, before any, path []string) (any, error) {
	switch v := edited.(type) {
	case string:
		if v != mask.Hidden || !c.marks(path) {
			return edited, nil
		}
		if before == nil {
			return nil, fmt.Errorf("%s: %s stands for a value that is set already, and none is: write the value", strings.Join(path, "."), mask.Hidden)
		}
		return before, nil
	case map[string]any:
		was, _ := before.(map[string]any)
		for name, below := range v {
			shown, err := c.reveal(below, was[name], append(path[:len(path):len(path)], name))
			if err != nil {
				return nil, err
			}
			v[name] = shown
		}
	case []any:
		was, _ := before.([]any)
		for i, below := range v {
			var old any
			if i < len(was) {
				old = was[i]
			}
			shown, err := c.reveal(below, old, append(path[:len(path):len(path)], schema.Item))
			if err != nil {
				return nil, err
			}
			v[i] = shown
		}
	}
	return edited, nil
}

// pair returns copies of two states of values with what is secret hidden, so that values that differ still do.
func (c secrecy) pair(old, next map[string]any) (was, is map[string]any) {
	was, is = c.values(old), c.values(next)
	tellApart(old, next, was, is)
	return was, is
}

// tellApart says of hidden values that differ which is which.
func tellApart(old, next, hiddenOld, hiddenNext map[string]any) {
	for name, value := range hiddenOld {
		below, isMap := value.(map[string]any)
		belowNext, isMapNext := hiddenNext[name].(map[string]any)
		if isMap && isMapNext {
			oldBelow, _ := old[name].(map[string]any)
			nextBelow, _ := next[name].(map[string]any)
			tellApart(oldBelow, nextBelow, below, belowNext)
			continue
		}
		if value == mask.Hidden && hiddenNext[name] == mask.Hidden && !reflect.DeepEqual(old[name], next[name]) {
			hiddenOld[name], hiddenNext[name] = mask.Before, mask.After
		}
	}
}

// text returns the values that an installation sets as they are edited: a block as it was written, unless something of it
// is secret.
func (c secrecy) text(inst *v1alpha1.ApplicationInstallation) (string, error) {
	own, err := install.OwnValues(inst)
	if err != nil {
		return "", err
	}
	hidden := c.values(own)
	if inst.Spec.ValuesBlock != "" && reflect.DeepEqual(own, hidden) {
		return inst.Spec.ValuesBlock, nil
	}
	if len(hidden) == 0 {
		return "", nil
	}
	text, err := yaml.Marshal(hidden)
	if err != nil {
		return "", fmt.Errorf("write values: %w", err)
	}
	return string(text), nil
}

// edit has an installation set the values of an edited text. One that says the same as before changes nothing. Comments are
// kept, as a block, unless the text stands for something secret.
func (c secrecy) edit(inst *v1alpha1.ApplicationInstallation, text string) error {
	text = strings.ReplaceAll(text, "\r\n", "\n") // as browsers send lines
	parsed, err := values.Parse([]byte(text))
	if err != nil {
		return fmt.Errorf("values: %w", err)
	}
	before, err := install.OwnValues(inst)
	if err != nil {
		return err
	}
	shown, err := c.text(inst)
	if err != nil {
		return err
	}
	if strings.TrimSpace(shown) == strings.TrimSpace(text) {
		return nil
	}
	untouched, err := json.Marshal(parsed)
	if err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	revealed, err := c.reveal(parsed, before, nil)
	if err != nil {
		return err
	}
	own, _ := revealed.(map[string]any)
	again, err := json.Marshal(own)
	if err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	if string(untouched) == string(again) && strings.Contains(text, "#") && len(own) > 0 {
		inst.Spec.Values, inst.Spec.ValuesBlock = nil, text
		return nil
	}
	return install.SetValues(inst, own)
}

// schemaWithin is how long it may take to fetch a chart for its schema: a page is good without.
const schemaWithin = 8 * time.Second

// errNoSchema says that a version has no schema of its values.
var errNoSchema = errors.New("the chart has no values.schema.json")

// schemaOf returns the schema of the values of a version: the copy that waybill-sync has made of it, as far as the viewer may
// read that, else that of the chart itself. An error says why it is not known, errNoSchema that there is none.
func (s *server) schemaOf(ctx context.Context, at fleet.Place, definition *v1alpha1.ApplicationDefinition, version string) (*schema.Schema, error) {
	offered := definition.GetVersion(version)
	if offered == nil {
		return nil, fmt.Errorf("ApplicationDefinition %s has no version %s", definition.Name, version)
	}
	if entry := definition.GetValuesSchema(offered.Version); entry != nil && entry.Digest != "" {
		found, err := copiedSchema(ctx, at, definition.Name, entry.Digest)
		if err == nil || !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return found, err
		}
	}
	shared, err := s.sources.open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, schemaWithin)
	defer cancel()
	found, err := shared.Schema(ctx, definition, offered)
	if err == nil && found == nil {
		err = errNoSchema
	}
	return found, err
}

func copiedSchema(ctx context.Context, at fleet.Place, definition, digest string) (*schema.Schema, error) {
	c, err := at.Hub.Client()
	if err != nil {
		return nil, err
	}
	held := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: at.SystemNamespace, Name: schema.ConfigMapName(definition)}
	if err := c.Get(ctx, key, held); err != nil {
		return nil, fmt.Errorf("get the schema: %w", at.Hub.Explain(err))
	}
	encoded, err := schema.Unpack(held.BinaryData[digest], digest)
	if err != nil {
		return nil, err
	}
	return schema.Compile(encoded)
}

// secrecyOf returns what hides the secret values of a version. Where that is not known, a note says so.
func (s *server) secrecyOf(ctx context.Context, at fleet.Place, definition *v1alpha1.ApplicationDefinition, version string) secrecy {
	found, err := s.schemaOf(ctx, at, definition, version)
	if err != nil && !errors.Is(err, errNoSchema) {
		at.Warn("Values that the chart marks as secret are not hidden, as its schema cannot be read: %s", err)
	}
	return secrecyBy(found)
}
