package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/api/expansion"
)

// Bounds of the schemas of one chart: what compiling them costs grows with the square of the objects,
// and with the length of their paths.
const (
	maxValues  = 50_000
	maxObjects = 5_000
	maxPaths   = 2 << 20
	maxDepth   = 100
	maxNumber  = 64
	// maxExponent is that of the numbers that values can have.
	maxExponent = 400
)

// Schema is a compiled bundle. It is safe for concurrent use.
type Schema struct {
	root compiled
	// Weight says how much memory it takes, in objects.
	Weight int
}

// compiled is the schema of one chart.
type compiled struct {
	schema *jsonschema.Schema // nil if the chart has none
	subs   []subchart
}

type subchart struct {
	Subchart
	compiled
}

// Compile reads an encoded bundle. A schema that Helm cannot use either is left out: no chart is
// installed with it.
func Compile(encoded []byte) (*Schema, error) {
	if len(encoded) > MaxSize {
		return nil, fmt.Errorf("%w: it has %d bytes, and at most %d are accepted", ErrTooLarge, len(encoded), MaxSize)
	}
	if err := expansion.JSON(encoded, maxValues); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	var bundle Bundle
	if err := json.Unmarshal(encoded, &bundle); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	c := &compiling{}
	root, err := c.bundle(&bundle)
	if err != nil {
		return nil, err
	}
	return &Schema{root: root, Weight: c.objects}, nil
}

// compiling adds up what the schemas of a chart cost.
type compiling struct {
	objects, paths int
	patterns       patterns
}

func (c *compiling) bundle(b *Bundle) (compiled, error) {
	var made compiled
	if len(b.Schema) > 0 {
		var err error
		if made.schema, err = c.schema(b.Schema); err != nil {
			return made, err
		}
	}
	for i := range b.Subcharts {
		sub, err := c.bundle(&b.Subcharts[i].Bundle)
		if err != nil {
			return made, err
		}
		if sub.schema != nil || len(sub.subs) > 0 {
			made.subs = append(made.subs, subchart{Subchart: b.Subcharts[i], compiled: sub})
		}
	}
	return made, nil
}

// schema compiles one schema; nil if it cannot be used.
func (c *compiling) schema(raw json.RawMessage) (made *jsonschema.Schema, err error) {
	const name = "chart:///values.schema.json"
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if err := c.weigh(doc, len(name), 0); err != nil {
		return nil, err
	}
	defer func() {
		// The library has been seen to panic on absurd schemas.
		if recover() != nil {
			made, err = nil, nil
		}
	}()
	markSecrets(doc)
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(elsewhere{})
	compiler.UseRegexpEngine(c.patterns.compile)
	if compiler.AddResource(name, doc) != nil {
		return nil, nil
	}
	if made, err = compiler.Compile(name); err != nil {
		return nil, nil
	}
	return made, nil
}

// elsewhere returns a schema that allows everything in place of a referenced one: schemas are not
// fetched.
type elsewhere struct{}

// Load implements jsonschema.URLLoader.
func (elsewhere) Load(string) (any, error) { return true, nil }

// weigh refuses a schema that would be too costly to compile. path is the length of the path to the
// value.
func (c *compiling) weigh(value any, path, depth int) error {
	switch v := value.(type) {
	case map[string]any:
		c.objects++
		c.paths += path
		for key, below := range v {
			if err := c.weigh(below, path+len(key)+1, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for i, below := range v {
			if err := c.weigh(below, path+len(strconv.Itoa(i))+1, depth+1); err != nil {
				return err
			}
		}
	case bool:
		c.objects++
		c.paths += path
	case json.Number:
		if !ordinary(v) {
			return fmt.Errorf("%w: it has numbers of absurd length", ErrTooLarge)
		}
	}
	if c.objects > maxObjects || c.paths > maxPaths || depth > maxDepth {
		return fmt.Errorf("%w: it has more than %d objects, or they are nested too deeply", ErrTooLarge, maxObjects)
	}
	return nil
}

// ordinary reports whether a number can be written out without taking much memory.
func ordinary(n json.Number) bool {
	if len(n) > maxNumber {
		return false
	}
	at := strings.IndexAny(n.String(), "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(n.String()[at+1:])
	return err == nil && exponent <= maxExponent && exponent >= -maxExponent
}
