package validate

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/manifests"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/plain"
)

// Severities of a finding.
const (
	severityError   = "error"
	severityWarning = "warning"
)

// finding is one thing that is wrong, or unwise.
type finding struct {
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Field     string `json:"field,omitempty"`
	Severity  string `json:"severity"`
	Message   string `json:"message"`
}

// report is what a run found.
type report struct {
	// Checked and Others count the objects of our kinds, and those of other kinds.
	Checked int `json:"checked"`
	Others  int `json:"others"`

	// Findings are sorted by file and line.
	Findings []finding `json:"findings"`
}

// inspect checks everything in a set.
func inspect(ctx context.Context, set *manifests.Set, schemas schemaOf) (*report, error) {
	all, err := loadSchemas()
	if err != nil {
		return nil, err
	}
	r := &report{Findings: []finding{}}
	for _, p := range set.Problems {
		r.Findings = append(r.Findings, finding{
			File: p.File, Line: p.Line, Kind: p.ID.Kind, Namespace: p.ID.Namespace, Name: p.ID.Name,
			Severity: severityError, Message: p.Message,
		})
	}
	for _, p := range manifest.Ignored(set.Objects) {
		r.Findings = append(r.Findings, finding{
			File: p.File, Line: p.Line, Kind: p.ID.Kind, Namespace: p.ID.Namespace, Name: p.ID.Name,
			Severity: severityWarning, Message: p.Message,
		})
	}
	for _, chart := range set.Charts {
		r.Findings = append(r.Findings, finding{File: chart, Severity: severityWarning, Message: plain.ChartMessage})
	}
	known := catalog{definitions: definitions(set), schemas: schemas}
	for _, object := range set.Objects {
		if object.GroupVersionKind().Group != v1alpha1.Group {
			r.Others++
			continue
		}
		r.Checked++
		r.object(ctx, set, all, known, object)
	}
	r.lists(set, known)
	slices.SortStableFunc(r.Findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return r, nil
}

// object checks one object of our kinds. If both the schema and the webhook report a field, the
// schema's error is kept: it also applies while the webhook is down.
func (r *report) object(ctx context.Context, set *manifests.Set, all schemas, known catalog, object manifest.Object) {
	add := func(severity, path, message string) {
		r.Findings = append(r.Findings, finding{
			File: object.File, Line: set.Line(object, path), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
			Field: path, Severity: severity, Message: message,
		})
	}
	s, err := all.find(object.GroupVersionKind())
	if err != nil {
		add(severityError, "kind", err.Error())
		return
	}
	checked := object.DeepCopy()
	refused := s.check(ctx, checked.Object)
	errs, warnings, err := checks[object.GetKind()](checked, known)
	if err != nil && len(refused) == 0 {
		add(severityError, "", err.Error())
	}
	for _, e := range unique(append(refused, withoutFields(errs, refused)...)) {
		add(severityError, e.Field, e.ErrorBody())
	}
	for _, warning := range warnings {
		add(severityWarning, "", warning)
	}
}

// withoutFields returns the errors whose fields are not among those of others.
func withoutFields(errs, others field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(slices.Clone(errs), func(e *field.Error) bool {
		return slices.ContainsFunc(others, func(other *field.Error) bool { return other.Field == e.Field })
	})
}

// unique leaves out errors that were reported before.
func unique(errs field.ErrorList) field.ErrorList {
	seen := map[string]bool{}
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		said := seen[e.Error()]
		seen[e.Error()] = true
		return said
	})
}

// definitions collects the definitions among the files. One that does not decode is reported when
// it is checked itself.
func definitions(set *manifests.Set) map[string]*v1alpha1.ApplicationDefinition {
	known := map[string]*v1alpha1.ApplicationDefinition{}
	for _, object := range set.Objects {
		if object.GroupVersionKind() != v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind) {
			continue
		}
		if definition, err := decode[v1alpha1.ApplicationDefinition](object.Unstructured); err == nil {
			known[definition.Name] = definition
		}
	}
	return known
}

func decode[T any](object *unstructured.Unstructured) (*T, error) {
	typed := new(T)
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed)
}
