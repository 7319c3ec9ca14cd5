package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/helm"
)

// Wish is an installation as it is looked at: its own spec, and what to try instead.
type Wish struct {
	// Installation as a file or a cluster has it.
	Installation *v1alpha1.ApplicationInstallation

	// Version to try instead of the installation's own; empty for none.
	Version string

	// Values that lie above all others, in this order.
	Values []map[string]any
}

// Resolved is what an installation refers to.
type Resolved struct {
	// Installation that was resolved.
	Installation *v1alpha1.ApplicationInstallation

	// Definition and the version of it.
	Definition *v1alpha1.ApplicationDefinition
	Version    *v1alpha1.ApplicationVersion

	// Namespace that the workload goes to.
	Namespace string

	// Values, merged from everything but the chart (C26).
	Values map[string]any

	secrets secrets
}

// secrets of the source, from the hub.
type secrets struct{ credentials, authorities *contentData }

// Resolve finds the definition, the version, the values and the credentials of a wish, as
// waybill-sync does. The definition is never a copy: it has no sources (C45).
func (l *Lookup) Resolve(ctx context.Context, w Wish) (*Resolved, error) {
	ref := w.Installation.Spec.ApplicationRef
	definition, err := l.definition(ctx, ref.Name)
	if err != nil {
		return nil, err
	}
	if definition.IsCopy() {
		return nil, fmt.Errorf("ApplicationDefinition %s is a copy without sources: use a kubeconfig of the hub, and --cluster for the user cluster", ref.Name)
	}
	wanted := firstOf(w.Version, ref.Version, definition.Spec.DefaultVersion)
	version := definition.GetVersion(wanted)
	switch {
	case wanted == "":
		return nil, fmt.Errorf("installation %s names no version, and ApplicationDefinition %s has no defaultVersion", w.Installation.Name, ref.Name)
	case version == nil:
		return nil, fmt.Errorf("ApplicationDefinition %s has no version %s: it offers %s", ref.Name, wanted, offered(definition))
	case version.Template == nil:
		return nil, fmt.Errorf("version %s of ApplicationDefinition %s has no template", wanted, ref.Name)
	}
	r := &Resolved{Installation: w.Installation, Definition: definition, Version: version}
	r.Namespace = r.Target().Name
	if r.Values, err = l.values(ctx, r, w.Values); err != nil {
		return nil, err
	}
	r.secrets, err = l.sourceSecrets(ctx, version.Template.Source)
	return r, err
}

func firstOf(words ...string) string {
	for _, word := range words {
		if word != "" {
			return word
		}
	}
	return ""
}

func offered(definition *v1alpha1.ApplicationDefinition) string {
	names := make([]string, len(definition.Spec.Versions))
	for i, v := range definition.Spec.Versions {
		names[i] = v.Version
	}
	return strings.Join(names, ", ")
}

// Target is the namespace that the workload goes to, and whether it is made (K36, K37).
func (r *Resolved) Target() v1alpha1.TargetNamespace {
	switch {
	case r.Installation.Spec.Namespace != nil:
		return *r.Installation.Spec.Namespace
	case r.Definition.Spec.DefaultNamespace != nil:
		return *r.Definition.Spec.DefaultNamespace
	default:
		return v1alpha1.TargetNamespace{Name: r.Installation.Namespace}
	}
}

// HelmOptions are those of the installation, else those of the definition; nil for defaults.
func (r *Resolved) HelmOptions() *v1alpha1.HelmDeployOptions {
	for _, options := range []*v1alpha1.DeployOptions{r.Installation.Spec.DeployOptions, r.Definition.Spec.DefaultDeployOptions} {
		if options != nil && options.Helm != nil {
			return options.Helm
		}
	}
	return nil
}

// values merges the layers; later ones win (C26).
func (l *Lookup) values(ctx context.Context, r *Resolved, above []map[string]any) (map[string]any, error) {
	base, err := decodeAll(
		namedValues{"spec.defaultValues of ApplicationDefinition " + r.Definition.Name, r.Definition.Spec.DefaultValues},
		namedValues{"values of its version " + r.Version.Version, r.Version.Template.Values},
	)
	if err != nil {
		return nil, err
	}
	if r.Version.ClusterFacts {
		facts, err := l.clusterFacts(ctx)
		if err != nil {
			return nil, err
		}
		base = append(base, facts)
	}
	for i, from := range r.Installation.Spec.ValuesFrom {
		values, err := l.valuesFrom(ctx, r.Installation.Namespace, from)
		if err != nil {
			return nil, fmt.Errorf("spec.valuesFrom[%d]: %w", i, err)
		}
		base = append(base, values)
	}
	own, err := decodeAll(namedValues{"spec.values", r.Installation.Spec.Values})
	if err != nil {
		return nil, err
	}
	block, err := ParseValues([]byte(r.Installation.Spec.ValuesBlock))
	if err != nil {
		return nil, fmt.Errorf("spec.valuesBlock: %w", err)
	}
	base = append(append(base, own...), block)
	return helm.MergeValues(append(base, above...)...), nil
}

type namedValues struct {
	name string
	json *apiextensionsv1.JSON
}

func decodeAll(layers ...namedValues) ([]map[string]any, error) {
	var decoded []map[string]any
	for _, layer := range layers {
		if layer.json == nil {
			continue
		}
		values := map[string]any{}
		if err := json.Unmarshal(layer.json.Raw, &values); err != nil {
			return nil, fmt.Errorf("%s: %w", layer.name, err)
		}
		decoded = append(decoded, values)
	}
	return decoded, nil
}

// ParseValues reads values from YAML. The error does not repeat them: they may be secret.
func ParseValues(content []byte) (map[string]any, error) {
	values := map[string]any{}
	if err := yaml.Unmarshal(content, &values); err != nil {
		return nil, fmt.Errorf("is no YAML that maps names to values")
	}
	return values, nil
}

// ReadValues reads files of values.
func ReadValues(files []string) ([]map[string]any, error) {
	var all []map[string]any
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read --values: %w", err)
		}
		values, err := ParseValues(content)
		if err != nil {
			return nil, fmt.Errorf("read --values: %s %w", file, err)
		}
		all = append(all, values)
	}
	return all, nil
}

// valuesFrom reads values from a Secret or ConfigMap beside the installation.
func (l *Lookup) valuesFrom(ctx context.Context, namespace string, from v1alpha1.ValuesReference) (map[string]any, error) {
	key := client.ObjectKey{Namespace: namespace, Name: from.Name}
	content, err := l.content(ctx, l.Target, from.Kind, key)
	if err != nil {
		return nil, err
	}
	if content == nil && from.Optional {
		return nil, nil
	}
	if content == nil {
		return nil, fmt.Errorf("%s %s does not exist", from.Kind, key)
	}
	data, ok := content.data[from.GetKey()]
	if !ok && from.Optional {
		return nil, nil
	}
	if !ok {
		return nil, fmt.Errorf("%s %s has no key %q", from.Kind, key, from.GetKey())
	}
	values, err := ParseValues(data)
	if err != nil {
		return nil, fmt.Errorf("%s %s: key %q %w", from.Kind, key, from.GetKey(), err)
	}
	return values, nil
}

// clusterFacts are what the chart of such a version sees of its cluster (C33). Without a
// cluster they stand for themselves.
func (l *Lookup) clusterFacts(ctx context.Context) (map[string]any, error) {
	facts := map[string]any{"name": "", "version": "", "labels": map[string]any{}}
	if l.Hub != nil && l.Target != nil && l.Target.Key.Name != "" {
		c, err := l.Hub.Client()
		if err != nil {
			return nil, err
		}
		found := &v1alpha1.KubernetesCluster{}
		if err := c.Get(ctx, l.Target.Key, found); err != nil {
			return nil, fmt.Errorf("read facts of cluster %s: %w", l.Target.Name(), l.Hub.Explain(err))
		}
		labels := map[string]any{}
		for name, value := range found.Labels {
			labels[name] = value
		}
		facts = map[string]any{"name": found.Name, "version": found.Status.Version, "labels": labels}
	}
	return map[string]any{"waybill": map[string]any{"cluster": facts}}, nil
}

// sourceSecrets reads what a source names: Secrets of the system namespace, annotated (K56).
func (l *Lookup) sourceSecrets(ctx context.Context, source v1alpha1.ApplicationSource) (secrets, error) {
	var credentials *v1alpha1.SourceCredentials
	var found secrets
	var err error
	switch {
	case source.Helm != nil:
		credentials = source.Helm.Credentials
		if ca := source.Helm.CASecretRef; ca != nil {
			if found.authorities, err = l.sourceSecret(ctx, ca.Name); err != nil {
				return found, err
			}
		}
	case source.Git != nil:
		credentials = source.Git.Credentials
	}
	if credentials != nil {
		found.credentials, err = l.sourceSecret(ctx, credentials.SecretRef.Name)
	}
	return found, err
}

func (l *Lookup) sourceSecret(ctx context.Context, name string) (*contentData, error) {
	key := client.ObjectKey{Namespace: l.SystemNamespace, Name: name}
	secret, err := l.content(ctx, l.Hub, "Secret", key)
	if err != nil {
		return nil, fmt.Errorf("credentials of the source: %w", err)
	}
	if secret == nil {
		return nil, fmt.Errorf("credentials of the source: Secret %s does not exist on the hub", key)
	}
	if _, ok := secret.annotations[v1alpha1.SecretTypeAnnotation]; !ok {
		return nil, fmt.Errorf("credentials of the source: Secret %s lacks the annotation %s", key, v1alpha1.SecretTypeAnnotation)
	}
	return secret, nil
}
