package values

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/helm"
)

// Input holds the specs that have values, or name where they are. The specs are required.
type Input struct {
	Definition   *v1alpha1.ApplicationDefinition
	Version      *v1alpha1.ApplicationVersion
	Installation *v1alpha1.ApplicationInstallation

	// Account is the ServiceAccount that the installation acts as. Without one, a user who can change
	// an object that valuesFrom names would decide what is installed with Waybill's own rights, so
	// only protected objects are used.
	Account string
}

// Object is a Secret or a ConfigMap.
type Object struct {
	Data map[string][]byte
	// Protected says that only users who may install may change it: it has the label
	// v1alpha1.ValuesLabel with the value v1alpha1.ValuesProtected.
	Protected bool
}

// IsProtected reports whether an object with these labels is protected.
func IsProtected(labels map[string]string) bool {
	return labels[v1alpha1.ValuesLabel] == v1alpha1.ValuesProtected
}

// Source reads what an Input names.
type Source interface {
	// Data returns a Secret or a ConfigMap of the user cluster; nil if it does not exist.
	Data(ctx context.Context, kind string, name types.NamespacedName) (*Object, error)
	// Cluster returns the cluster as its hub knows it; an empty one if the hub has none for it.
	Cluster(ctx context.Context) (*v1alpha1.KubernetesCluster, error)
}

// InvalidError says that values cannot be used. Its message never repeats them, since they may be
// secret.
type InvalidError struct {
	// Elsewhere says that the fault is not in the definition or the installation, but in an object
	// that the installation names: its next change may help.
	Elsewhere bool
	// Unprotected says that an object is not used because it is not protected.
	Unprotected bool

	message string
}

// Error returns what is wrong, and where.
func (e *InvalidError) Error() string { return e.message }

// Layer is what one source sets.
type Layer struct {
	// From names the source: a field, or an object.
	From   string
	Values map[string]any
	// Secret says that it is a Secret.
	Secret bool
}

// Of merges the layers of values, of which later ones win. Values are data: nothing in them is
// executed. An error is an *InvalidError, or what the source returned.
func Of(ctx context.Context, in Input, from Source) (map[string]any, error) {
	layers, err := Layers(ctx, in, from)
	if err != nil {
		return nil, err
	}
	return helm.MergeValues(contents(layers)...), nil
}

// Layers returns the layers of values, the lowest first: those of the definition, of its version, facts
// about the cluster if the version asks for them, valuesFrom in its order, and the installation's own.
// An error is as that of Of.
func Layers(ctx context.Context, in Input, from Source) ([]Layer, error) {
	var layers []Layer
	for _, read := range []func() ([]Layer, error){
		func() ([]Layer, error) { return in.offered() },
		func() ([]Layer, error) { return in.facts(ctx, from) },
		func() ([]Layer, error) { return in.named(ctx, from) },
		func() ([]Layer, error) { return in.own() },
	} {
		more, err := read()
		if err != nil {
			return nil, err
		}
		layers = append(layers, more...)
		if err := bounded(layers); err != nil {
			return nil, err
		}
	}
	return layers, nil
}

func contents(layers []Layer) []map[string]any {
	all := make([]map[string]any, len(layers))
	for i, layer := range layers {
		all[i] = layer.Values
	}
	return all
}

// bounded returns an error if layers have too many values together: what a chart makes of each takes a
// multiple of it.
func bounded(layers []Layer) error {
	var size expansion.Size
	for _, layer := range layers {
		size.Add(layer.Values)
	}
	if size.Values > expansion.MaxValues {
		return elsewhere("the values of the definition, of spec.valuesFrom and of spec.values have more than %d values together", expansion.MaxValues)
	}
	return nil
}

// offered returns the values of the definition and of its version.
func (in Input) offered() ([]Layer, error) {
	general, err := fromJSON(in.Definition.Spec.DefaultValues)
	if err != nil {
		return nil, invalid("defaultValues of ApplicationDefinition %s: %w", in.Definition.Name, err)
	}
	special, err := fromJSON(in.Version.Template.Values)
	if err != nil {
		return nil, invalid("values of version %s of ApplicationDefinition %s: %w", in.Version.Version, in.Definition.Name, err)
	}
	definition := "ApplicationDefinition " + in.Definition.Name
	return []Layer{
		{From: definition + ", defaultValues", Values: general},
		{From: definition + ", version " + in.Version.Version, Values: special},
	}, nil
}

// facts returns the facts about the cluster, as .Values.waybill.cluster.
func (in Input) facts(ctx context.Context, from Source) ([]Layer, error) {
	if !in.Version.ClusterFacts {
		return nil, nil
	}
	cluster, err := from.Cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("read facts about the cluster: %w", err)
	}
	labels := map[string]any{}
	for name, value := range cluster.Labels {
		labels[name] = value
	}
	facts := map[string]any{"name": cluster.Name, "version": cluster.Status.Version, "labels": labels}
	return []Layer{{From: "facts about the cluster", Values: map[string]any{"waybill": map[string]any{"cluster": facts}}}}, nil
}

// named returns the values of valuesFrom, in its order.
func (in Input) named(ctx context.Context, from Source) ([]Layer, error) {
	var layers []Layer
	for i, reference := range in.Installation.Spec.ValuesFrom {
		layer, err := in.read(ctx, from, reference)
		var known *InvalidError
		if errors.As(err, &known) {
			known.message = fmt.Sprintf("spec.valuesFrom[%d]: %s", i, known.message)
			return nil, known
		}
		if err != nil {
			return nil, fmt.Errorf("spec.valuesFrom[%d]: %w", i, err)
		}
		layers = append(layers, Layer{From: reference.Kind + " " + reference.Name, Values: layer, Secret: reference.Kind == "Secret"})
		if err := bounded(layers); err != nil {
			return nil, err
		}
	}
	return layers, nil
}

func (in Input) read(ctx context.Context, from Source, reference v1alpha1.ValuesReference) (map[string]any, error) {
	name := types.NamespacedName{Namespace: in.Installation.Namespace, Name: reference.Name}
	found, err := from.Data(ctx, reference.Kind, name)
	if err != nil {
		return nil, err
	}
	switch {
	case found == nil && reference.Optional && in.Account == "" && slices.Contains(in.Installation.Status.OptionalValues, reference.Kind+"/"+reference.Name):
		return nil, elsewhere("%s %s no longer exists, and what is installed takes values from it: create it again, or remove it from spec.valuesFrom", reference.Kind, name)
	case found == nil && reference.Optional:
		return nil, nil
	case found == nil:
		return nil, elsewhere("%s %s does not exist", reference.Kind, name)
	case !found.Protected && in.Account == "":
		return nil, &InvalidError{Elsewhere: true, Unprotected: true, message: fmt.Sprintf("%s %s lacks the label %s: %s, without which anyone who may edit it "+
			"could change what Waybill installs with its own rights; ask a user who may install ApplicationDefinition %s to label it, or set spec.serviceAccountName",
			reference.Kind, name, v1alpha1.ValuesLabel, v1alpha1.ValuesProtected, in.Definition.Name)}
	}
	content, ok := found.Data[reference.GetKey()]
	switch {
	case ok:
	case reference.Optional:
		return nil, nil
	default:
		return nil, elsewhere("%s %s has no key %q", reference.Kind, name, reference.GetKey())
	}
	values, err := Parse(content)
	if err != nil {
		return nil, elsewhere("%s %s: key %q %w", reference.Kind, name, reference.GetKey(), err)
	}
	return values, nil
}

// own returns the values in the installation itself.
func (in Input) own() ([]Layer, error) {
	values, err := fromJSON(in.Installation.Spec.Values)
	if err != nil {
		return nil, invalid("spec.values: %w", err)
	}
	block, err := Parse([]byte(in.Installation.Spec.ValuesBlock))
	if err != nil {
		return nil, invalid("spec.valuesBlock %w", err)
	}
	return []Layer{{From: "spec.values", Values: values}, {From: "spec.valuesBlock", Values: block}}, nil
}

// Parse parses values from YAML. The error does not repeat them.
func Parse(content []byte) (map[string]any, error) {
	notValues := errors.New("is not a YAML mapping of names to values")
	var tooLarge *expansion.TooLargeError
	switch err := expansion.Text(content, expansion.Limits{}); {
	case errors.As(err, &tooLarge):
		return nil, fmt.Errorf("cannot be used: %w", err)
	case err != nil:
		return nil, notValues
	}
	if expansion.Nodes(content) > expansion.MaxValues {
		return nil, fmt.Errorf("cannot be used: it has more than %d values", expansion.MaxValues)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(content, &values); err != nil {
		return nil, notValues
	}
	return values, nil
}

func fromJSON(raw *apiextensionsv1.JSON) (map[string]any, error) {
	if raw == nil {
		return nil, nil
	}
	if err := expansion.JSON(raw.Raw, expansion.MaxValues); err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := json.Unmarshal(raw.Raw, &values); err != nil {
		return nil, errors.New("must map names to values")
	}
	return values, nil
}

func invalid(format string, args ...any) error {
	return &InvalidError{message: fmt.Errorf(format, args...).Error()}
}

func elsewhere(format string, args ...any) error {
	return &InvalidError{Elsewhere: true, message: fmt.Errorf(format, args...).Error()}
}
