package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxMarkLooks is what Looks begin with: enough for the values of many installations, and less than a second.
const maxMarkLooks = 1_000_000

// Looks bound the work of finding out what is marked: schemas can refer to each other in many ways, and values have many
// names. They are not safe for concurrent use.
type Looks struct{ left int }

// NewLooks returns what is enough for the values on a page.
func NewLooks() *Looks { return &Looks{left: maxMarkLooks} }

// Spent reports whether they did not suffice: what was not checked counts as secret.
func (l *Looks) Spent() bool { return l.left < 0 }

// spend reports whether so many looks are left, and takes them.
func (l *Looks) spend(looks int) bool {
	if l.left >= 0 {
		l.left -= looks
	}
	return l.left >= 0
}

// Mark is what the schemas of a chart and of its subcharts say of a value: whether it is secret, by writeOnly or format password.
// What is below it is found out when it is asked for, once for each name. It is not safe for concurrent use.
type Mark struct {
	looks *Looks
	// secret says that what is below is not to be shown, nor is the value itself, unless it is that of the whole chart.
	secret, whole bool
	schemas       []*jsonschema.Schema // of the value
	charts        []*compiled          // that it is the values of
	below         map[string]*Mark     // by name
	item          *Mark                // nil before it was asked for
}

// Marks returns what is marked of the values of the chart.
func (s *Schema) Marks(looks *Looks) *Mark {
	m := &Mark{looks: looks, whole: true, charts: []*compiled{&s.root}}
	m.read(s.root.schema)
	return m
}

// Secret reports whether the value is not to be shown: it, or one that it is in, is marked, or the Looks did not suffice to find out.
func (m *Mark) Secret() bool { return m.secret && !m.whole }

// None reports whether neither the value nor anything below it is marked.
func (m *Mark) None() bool { return !m.secret && len(m.schemas)+len(m.charts) == 0 }

// read takes in what schemas say of the value, with all that they refer to.
func (m *Mark) read(todo ...*jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{}
	for len(todo) > 0 {
		one := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if one == nil || seen[one] {
			continue
		}
		if one.WriteOnly || !m.looks.spend(1) {
			m.secret = true
			return
		}
		seen[one] = true
		m.schemas = append(m.schemas, one)
		todo = append(todo, alike(one)...)
	}
}

// alike returns the schemas that say more of the same value.
func alike(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	return append(all, s.Ref, s.Then, s.Else)
}

// Below returns what is marked of the value that has a name in this one.
func (m *Mark) Below(name string) *Mark {
	if m.None() {
		return m
	}
	found := m.below[name]
	if found == nil {
		found = m.named(name)
		if m.below == nil {
			m.below = map[string]*Mark{}
		}
		m.below[name] = found
	}
	return found
}

func (m *Mark) named(name string) *Mark {
	made := &Mark{looks: m.looks, secret: m.secret}
	var of []*jsonschema.Schema
	for _, s := range m.schemas {
		if made.secret = made.secret || !m.looks.spend(1); made.secret {
			return made
		}
		of = append(of, m.looks.property(s, name)...)
	}
	for _, c := range m.charts {
		m.looks.spend(1 + len(c.subs)/20)
		for i := range c.subs {
			if sub := &c.subs[i]; sub.Name == name {
				made.charts, of = append(made.charts, &sub.compiled), append(of, sub.schema)
			}
		}
	}
	made.read(of...)
	made.secret = made.secret || m.looks.Spent()
	return made
}

// property returns what a schema says of a property of that name.
func (l *Looks) property(s *jsonschema.Schema, name string) []*jsonschema.Schema {
	var of []*jsonschema.Schema
	for expression, schema := range s.PatternProperties {
		if p, ok := expression.(*pattern); ok && !l.spend(p.cost(name)) {
			return of
		}
		if expression.MatchString(name) {
			of = append(of, schema)
		}
	}
	if known, ok := s.Properties[name]; ok {
		return append(of, known)
	}
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	return append(of, additional)
}

// Item returns what is marked of any item of this value.
func (m *Mark) Item() *Mark {
	if m.None() {
		return m
	}
	if m.item == nil {
		m.item = &Mark{looks: m.looks, secret: m.secret}
		var of []*jsonschema.Schema
		m.looks.spend(len(m.schemas))
		for _, s := range m.schemas {
			one, _ := s.Items.(*jsonschema.Schema)
			each, _ := s.Items.([]*jsonschema.Schema)
			others, _ := s.AdditionalItems.(*jsonschema.Schema)
			of = append(append(of, one, others, s.Items2020), slices.Concat(each, s.PrefixItems)...)
		}
		m.item.read(of...)
		m.item.secret = m.item.secret || m.looks.Spent()
	}
	return m.item
}
