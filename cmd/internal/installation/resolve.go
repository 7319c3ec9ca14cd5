package installation

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/render/values"
)

// Wish is an installation to resolve: its own spec, and what to try instead.
type Wish struct {
	// Installation as it is in a file or a cluster.
	Installation *v1alpha1.ApplicationInstallation

	// Version to try instead of the installation's own; empty for none.
	Version string

	// Values take precedence over all others; later ones win.
	Values []map[string]any
}

// Resolved is everything that an installation refers to.
type Resolved struct {
	// Installation that was resolved.
	Installation *v1alpha1.ApplicationInstallation

	// Definition and its version.
	Definition *v1alpha1.ApplicationDefinition
	Version    *v1alpha1.ApplicationVersion

	// Namespace of the workload.
	Namespace string

	// Values, merged from everything but the chart.
	Values map[string]any

	secrets secrets
}

// secrets of the source, from the hub.
type secrets struct{ credentials, authorities *contentData }

// GoneError says why an installation would be uninstalled, instead of installed or upgraded.
type GoneError struct{ why string }

// Error returns the reason.
func (e *GoneError) Error() string { return e.why + ", so that it is uninstalled" }

// Resolve finds the definition, the version, the values and the credentials of a wish, as
// waybill-sync does. The definition is never a copy without sources, as user clusters have it. The error is
// a *GoneError if waybill-sync would look for none of them.
func (l *Lookup) Resolve(ctx context.Context, w Wish) (*Resolved, error) {
	if !w.Installation.DeletionTimestamp.IsZero() {
		return nil, &GoneError{"it is being deleted"}
	}
	if w.Version != "" {
		w.Installation = w.Installation.DeepCopy()
		w.Installation.Spec.ApplicationRef.Version = w.Version
	}
	ref := w.Installation.Spec.ApplicationRef
	definition, err := l.definition(ctx, ref.Name)
	if err != nil {
		return nil, err
	}
	if !definition.InCatalog() {
		return nil, fmt.Errorf("ApplicationDefinition %s is a copy without sources: use a kubeconfig of the hub, and --cluster for the user cluster", ref.Name)
	}
	wanted := w.Installation.GetVersion(definition)
	version := definition.GetVersion(wanted)
	switch {
	case validation.Withdrawn(w.Installation, definition):
		return nil, &GoneError{fmt.Sprintf("version %s was removed from ApplicationDefinition %s by %s", wanted, ref.Name, v1alpha1.ForceRemoveAnnotation)}
	case wanted == "":
		return nil, fmt.Errorf("installation %s names no version, and ApplicationDefinition %s has no defaultVersion", w.Installation.Name, ref.Name)
	case version == nil:
		return nil, fmt.Errorf("ApplicationDefinition %s has no version %s: it offers %s", ref.Name, wanted, offered(definition))
	case version.Template == nil:
		return nil, fmt.Errorf("version %s of ApplicationDefinition %s has no template", wanted, ref.Name)
	}
	if err := validation.ValidateInstallationAccount(w.Installation, definition, "").ToAggregate(); err != nil {
		return nil, err
	}
	if err := l.checkOffer(ctx, w.Installation, definition); err != nil {
		return nil, err
	}
	r := &Resolved{Installation: w.Installation, Definition: definition, Version: version}
	r.Namespace = r.Target().Name
	if r.Values, err = l.values(ctx, r, w.Values); err != nil {
		return nil, err
	}
	r.secrets, err = l.sourceSecrets(ctx, version.Template.Source)
	return r, err
}

// checkOffer returns an error if the definition is not offered to the target, as far as that is
// where the installation will be, and nothing was begun there while it was. It warns if the user
// cannot see that.
func (l *Lookup) checkOffer(ctx context.Context, inst *v1alpha1.ApplicationInstallation, definition *v1alpha1.ApplicationDefinition) error {
	selector, err := validation.OfferSelector(definition)
	if err != nil || !l.Placed || selector.Empty() {
		return err
	}
	cluster, unknown, err := l.cluster(ctx)
	if isHidden(err) {
		l.Warn("it is not known whether ApplicationDefinition %s is offered to %s: %s", definition.Name, l.Target.Name(), err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("see whether ApplicationDefinition %s is offered to %s: %w", definition.Name, l.Target.Name(), err)
	}
	begun := cluster.HasBegun(definition, cluster.Status.UID) || unknown != "" && inst.Status.Application != nil
	if begun || selector.Matches(labels.Set(cluster.Labels)) {
		return nil
	}
	why := fmt.Sprintf("the labels of its KubernetesCluster do not match %q", selector)
	if unknown != "" {
		why = unknown + ": name the cluster with --cluster"
	}
	return fmt.Errorf("ApplicationDefinition %s is not offered to %s: %s", definition.Name, l.Target.Name(), why)
}

func offered(definition *v1alpha1.ApplicationDefinition) string {
	names := make([]string, len(definition.Spec.Versions))
	for i, v := range definition.Spec.Versions {
		names[i] = v.Version
	}
	return strings.Join(names, ", ")
}

// Target returns the namespace of the workload, and whether it is created.
func (r *Resolved) Target() v1alpha1.TargetNamespace { return r.Installation.GetTarget(r.Definition) }

// Account returns the ServiceAccount that the installation acts as; empty for Waybill's own identity, as
// far as the flags of waybill-sync name none.
func (r *Resolved) Account() string { return r.Installation.GetServiceAccountName(r.Definition, "") }

// LooksUp reports whether templates may look up objects of the cluster.
func (r *Resolved) LooksUp() bool { return r.Account() != "" || r.Definition.Spec.AllowLookup }

// HelmOptions returns those of the installation, else those of the definition; nil for defaults.
func (r *Resolved) HelmOptions() *v1alpha1.HelmDeployOptions {
	return r.Installation.GetHelmOptions(r.Definition)
}

// values merges the layers; later ones win.
func (l *Lookup) values(ctx context.Context, r *Resolved, above []map[string]any) (map[string]any, error) {
	merged, err := values.Of(ctx, values.Input{
		Definition: r.Definition, Version: r.Version, Installation: r.Installation, Account: r.Account(),
	}, valuesSource{l})
	if err != nil {
		return nil, err
	}
	return helm.MergeValues(append([]map[string]any{merged}, above...)...), nil
}

// Layers returns the layers of values that Values was merged from, but for the chart's own.
func (l *Lookup) Layers(ctx context.Context, r *Resolved) ([]values.Layer, error) {
	return values.Layers(ctx, values.Input{
		Definition: r.Definition, Version: r.Version, Installation: r.Installation, Account: r.Account(),
	}, valuesSource{l})
}

// ReadValues reads files of values.
func ReadValues(files []string) ([]map[string]any, error) {
	var all []map[string]any
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read --values: %w", err)
		}
		read, err := values.Parse(content)
		if err != nil {
			return nil, fmt.Errorf("read --values: %s %w", file, err)
		}
		all = append(all, read)
	}
	return all, nil
}

// valuesSource looks up the sources of values in the same way as everything else.
type valuesSource struct{ *Lookup }

// Data implements values.Source.
func (v valuesSource) Data(ctx context.Context, kind string, name types.NamespacedName) (*values.Object, error) {
	found, err := v.content(ctx, v.Target, kind, name)
	if found == nil || err != nil {
		return nil, err
	}
	return &values.Object{Data: found.data, Protected: values.IsProtected(found.labels)}, nil
}

// Cluster implements values.Source. If Unknown is set, it gets to know why the result is empty.
func (v valuesSource) Cluster(ctx context.Context) (*v1alpha1.KubernetesCluster, error) {
	found, unknown, err := v.cluster(ctx)
	if v.Unknown != nil && isHidden(err) {
		unknown, err = err.Error(), nil
	}
	if v.Unknown != nil && unknown != "" {
		v.Unknown(unknown)
	}
	return found, err
}

// isHidden reports whether an error says that a user cannot see an object: it may not be read, or the
// cluster has no such object or kind.
func isHidden(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// cluster returns the target as the hub knows it, or an empty one, and why it does not know it.
func (l *Lookup) cluster(ctx context.Context) (found *v1alpha1.KubernetesCluster, unknown string, err error) {
	found = &v1alpha1.KubernetesCluster{}
	if l.Hub == nil || l.Target == nil {
		return found, "no cluster is asked", nil
	}
	c, err := l.Hub.Client()
	if err != nil {
		return found, "", err
	}
	if l.Target.Key.Name == "" || l.Target == l.Hub {
		return l.itself(ctx, c)
	}
	if err := c.Get(ctx, l.Target.Key, found); err != nil {
		return found, "", fmt.Errorf("get KubernetesCluster %s: %w", l.Target.Name(), l.Hub.Explain(err))
	}
	return found, "", nil
}

// itself returns the KubernetesCluster that the hub has for itself; an empty one if it has none, or
// several and so none that is known to be meant.
func (l *Lookup) itself(ctx context.Context, hub client.Client) (found *v1alpha1.KubernetesCluster, unknown string, err error) {
	found = &v1alpha1.KubernetesCluster{}
	list := &v1alpha1.KubernetesClusterList{}
	if err := hub.List(ctx, list); err != nil {
		return found, "", fmt.Errorf("list KubernetesClusters: %w", l.Hub.Explain(err))
	}
	others := func(k v1alpha1.KubernetesCluster) bool { return k.Spec.KubeconfigSecretRef != nil }
	if own := slices.DeleteFunc(list.Items, others); len(own) == 1 {
		return &own[0], "", nil
	}
	return found, l.Hub.Name() + " is a hub that has no KubernetesCluster for itself, or several", nil
}

// sourceSecrets reads the Secrets that a source names, from the system namespace.
func (l *Lookup) sourceSecrets(ctx context.Context, source v1alpha1.ApplicationSource) (secrets, error) {
	var credentials *v1alpha1.SourceCredentials
	var found secrets
	var err error
	switch {
	case source.Helm != nil && l.Local.stands(source.Helm.URL), source.Git != nil && l.Local.stands(source.Git.Remote):
	case source.Helm != nil:
		credentials = source.Helm.Credentials
		if ca := source.Helm.CASecretRef; ca != nil {
			if found.authorities, err = l.sourceSecret(ctx, ca.Name, false); err != nil {
				return found, err
			}
		}
	case source.Git != nil:
		credentials = source.Git.Credentials
	}
	if credentials != nil {
		found.credentials, err = l.sourceSecret(ctx, credentials.SecretRef.Name, true)
	}
	return found, err
}

// sourceSecret reads a Secret by the rules of waybill-sync: credentials must be annotated as such, authorities need not be.
func (l *Lookup) sourceSecret(ctx context.Context, name string, annotated bool) (*contentData, error) {
	key := client.ObjectKey{Namespace: l.SystemNamespace, Name: name}
	secret, err := l.content(ctx, l.Hub, "Secret", key)
	if err != nil {
		return nil, fmt.Errorf("credentials of the source: %w", err)
	}
	if secret == nil {
		return nil, fmt.Errorf("credentials of the source: Secret %s does not exist on the hub", key)
	}
	if _, marked := secret.annotations[v1alpha1.SecretTypeAnnotation]; annotated && !marked {
		return nil, fmt.Errorf("credentials of the source: Secret %s lacks the annotation %s", key, v1alpha1.SecretTypeAnnotation)
	}
	return secret, nil
}
