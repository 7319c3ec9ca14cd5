package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/render/values/schema"
	"waybill.dev/waybill/sync/source/chart"
)

// adding are the flags of the command `catalog add`.
type adding struct {
	access

	env         *cli.Env
	name        string
	version     string
	versions    int
	description string
	url         string
	secret      string
	caSecret    string
	plainHTTP   bool
	apply       bool
	format      *output.Format
}

func newAdd(env *cli.Env) *cobra.Command {
	o := &adding{env: env, format: output.NewFormat()}
	cmd := &cobra.Command{
		Use:   "add REPOSITORY-URL CHART | oci://REGISTRY/PATH/CHART | FOLDER-OR-FILE --url REPOSITORY-URL",
		Short: "Write a definition from a chart",
		Long: `Write an ApplicationDefinition from a chart: its name, description, icon, links and versions. It is
printed, to be committed; --apply applies it to the hub.

The newest version is offered, and is the default; --all-versions offers more of them, pre-releases
left out. Of a local folder or packed chart, everything is taken from there, and --url says where
Waybill gets the chart. An icon is embedded if it is a PNG, or an SVG that runs and loads nothing, of
at most 64 KiB. The chart is fetched with --username, or the credentials of --secret. The schema of its
values is not written: the hub reads that from the chart, and a chart without one is a warning.`,
		Example: `  # A definition of a chart, to be committed
  waybill catalog add https://charts.example.com web > catalog/web.yaml

  # Of a local chart, which is pushed to a registry later
  waybill catalog add charts/web --url oci://registry.example.com/charts`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "Name of the definition; that of the chart unless given")
	flags.StringVar(&o.version, "version", "", "Newest version to offer; the newest there is unless given")
	flags.IntVar(&o.versions, "all-versions", 1, "How many versions to offer at most, the newest ones")
	flags.StringVar(&o.description, "description", "", "Description; that of the chart unless given")
	flags.StringVar(&o.url, "url", "", "Repository or registry to get a local chart from")
	flags.StringVar(&o.secret, "secret", "", "Secret of the hub's system namespace with the credentials of the repository")
	flags.StringVar(&o.caSecret, "ca-secret", "", "Secret of the hub's system namespace whose ca.crt has the certificate authorities of the repository")
	flags.BoolVar(&o.plainHTTP, "plain-http", false, "Access an OCI registry without TLS")
	flags.BoolVar(&o.apply, "apply", false, "Apply the definition to the hub instead of printing it")
	o.addFlags(cmd)
	o.format.AddFlag(cmd)
	return cmd
}

// maxVersions is how many versions a definition may have.
const maxVersions = 100

func (o *adding) run(ctx context.Context, args []string) error {
	if o.versions < 1 || o.versions > maxVersions {
		return fmt.Errorf("--all-versions must be from 1 to %d", maxVersions)
	}
	if o.apply && o.format.Structured() {
		return errors.New("--apply and -o exclude each other")
	}
	source, local, err := o.source(args)
	if err != nil {
		return err
	}
	sources, err := installation.OpenSources(nil, false)
	if err != nil {
		return err
	}
	defer func() { _ = sources.Close() }() // a failure to clean up is not worth an error
	definition, err := o.define(ctx, sources.Charts(), source, local)
	if err != nil {
		return err
	}
	if errs := validation.ValidateApplicationDefinition(definition, nil); len(errs) > 0 {
		return fmt.Errorf("the definition that this chart would make is invalid: %w", errs.ToAggregate())
	}
	if o.apply {
		return o.write(ctx, definition)
	}
	return o.print(definition)
}

// source returns where the arguments say that the chart is, and the local folder or file to read it from
// instead, if any.
func (o *adding) source(args []string) (source *v1alpha1.HelmSource, local string, err error) {
	source = &v1alpha1.HelmSource{PlainHTTP: o.plainHTTP}
	if o.secret != "" {
		source.Credentials = &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: o.secret}}
	}
	if o.caSecret != "" {
		source.CASecretRef = &v1alpha1.LocalReference{Name: o.caSecret}
	}
	remote := strings.Contains(args[0], "://")
	switch {
	case !remote && (len(args) > 1 || o.url == ""):
		return nil, "", fmt.Errorf("%s is a local chart: give it alone, and say with --url which repository Waybill gets it from", args[0])
	case !remote:
		source.URL = o.url
		return source, args[0], nil
	case o.url != "":
		return nil, "", errors.New("--url is for a local chart")
	case len(args) == 2:
		source.URL, source.ChartName = args[0], args[1]
	case strings.HasPrefix(args[0], "oci://"):
		reference := chart.Split(args[0])
		source.URL, source.ChartName = reference.URL, reference.Name
	default:
		return nil, "", fmt.Errorf("which chart of %s? name it: waybill catalog add REPOSITORY-URL CHART", args[0])
	}
	source.URL = strings.TrimRight(source.URL, "/")
	return source, "", nil
}

// define returns the definition of a chart.
func (o *adding) define(ctx context.Context, charts *chart.Cache, source *v1alpha1.HelmSource, local string) (*v1alpha1.ApplicationDefinition, error) {
	if local != "" {
		loaded, err := readLocal(ctx, charts, local)
		if err != nil {
			return nil, err
		}
		source.ChartName = loaded.Name()
		return o.definition(ctx, charts, loaded, source, []string{loaded.Metadata.Version}), nil
	}
	credentials, err := o.credentialsFor(ctx, o.env, source)
	if err != nil {
		return nil, err
	}
	reference := chart.Reference{URL: source.URL, Name: source.ChartName}
	all, err := charts.Versions(ctx, reference, credentials)
	if err != nil {
		return nil, err
	}
	versions, err := o.choose(source.ChartName, all)
	if err != nil {
		return nil, err
	}
	reference.Version = versions[0]
	loaded, err := charts.Get(ctx, reference, credentials)
	if err != nil {
		return nil, err
	}
	return o.definition(ctx, charts, loaded, source, versions), nil
}

// choose returns the versions to offer of those that there are, newest first. Pre-releases are offered if
// they are asked for by name, or there is nothing else.
func (o *adding) choose(name string, all []string) ([]string, error) {
	released := onlyReleased(all)
	if len(released) == 0 {
		released = all
	}
	if o.version == "" {
		return released[:min(len(released), o.versions)], nil
	}
	var chosen []string
	for _, v := range all {
		switch {
		case len(chosen) == 0 && v1alpha1.SameVersion(v, o.version),
			len(chosen) > 0 && len(chosen) < o.versions && isReleased(v):
			chosen = append(chosen, v)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("chart %s has no version %s: its newest are %s", name, o.version, strings.Join(all[:min(len(all), 5)], ", "))
	}
	return chosen, nil
}

func onlyReleased(versions []string) []string {
	var released []string
	for _, v := range versions {
		if isReleased(v) {
			released = append(released, v)
		}
	}
	return released
}

// isReleased reports whether a version is a semantic one and no pre-release.
func isReleased(version string) bool {
	v, err := semver.NewVersion(version)
	return err == nil && v.Prerelease() == ""
}

// definition returns a definition that offers these versions of a chart.
func (o *adding) definition(ctx context.Context, charts *chart.Cache, loaded *chart.Chart, source *v1alpha1.HelmSource, versions []string) *v1alpha1.ApplicationDefinition {
	m := loaded.Metadata
	definition := &v1alpha1.ApplicationDefinition{}
	definition.Name = firstOf(o.name, m.Name)
	spec := &definition.Spec
	spec.Description = excerpt.Of(excerpt.Line(firstOf(o.description, m.Description)), 4096)
	spec.DocumentationURL = link(m.Home)
	for _, other := range m.Sources {
		if spec.SourceURL = link(other); spec.SourceURL != "" {
			break
		}
	}
	if m.Icon != "" {
		var err error
		if spec.Logo, err = logo(ctx, charts, m.Icon, source.URL); err != nil {
			o.env.Warnf("the icon is left out: %s", err)
		}
	}
	if m.Deprecated {
		o.env.Warnf("chart %s %s is deprecated by its author", m.Name, m.Version)
	}
	if why := unchecked(loaded); why != "" {
		o.env.Warnf("values of chart %s %s are checked only when it is rendered, not at admission: %s", m.Name, m.Version, why)
	}
	spec.Method, spec.DefaultVersion = v1alpha1.MethodHelm, versions[0]
	for _, version := range versions {
		at := *source
		at.ChartVersion = version
		spec.Versions = append(spec.Versions, v1alpha1.ApplicationVersion{
			Version: version, Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Helm: &at}},
		})
	}
	return definition
}

// unchecked returns why admission cannot check the values of a chart; empty if it can. The schema is not part of
// a definition: the hub reads it from the chart.
func unchecked(loaded *chart.Chart) string {
	bundle := helm.Schemas(loaded.Chart)
	if bundle.Empty() {
		return "it has no values.schema.json"
	}
	encoded, err := bundle.Encode()
	if err == nil {
		_, err = schema.Compile(encoded)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// link returns an address that people may follow; nothing for any other.
func link(address string) string {
	if (strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")) && len(address) <= 2048 && !strings.ContainsAny(address, " \t\r\n\"<>") {
		return address
	}
	return ""
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// readLocal reads a chart from a folder, or a packed one from a file.
func readLocal(ctx context.Context, charts *chart.Cache, name string) (*chart.Chart, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	if info.IsDir() {
		return readFolder(ctx, charts, name)
	}
	file, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	loaded, err := charts.FromArchive(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("read chart %s: %w", name, err)
	}
	return loaded, nil
}

// print prints a definition as people would write it.
func (o *adding) print(definition *v1alpha1.ApplicationDefinition) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	if err != nil {
		return fmt.Errorf("write the definition: %w", err)
	}
	manifest := &unstructured.Unstructured{Object: content}
	manifest.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind))
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	if !o.format.Structured() {
		_ = o.format.Set("yaml") // which it allows
	}
	return o.format.Print(o.env.Out, content)
}

// write creates the definition in the hub. One that is there is left alone: bump adds versions to it.
func (o *adding) write(ctx context.Context, definition *v1alpha1.ApplicationDefinition) error {
	hub, err := o.env.Hub()
	if err != nil {
		return err
	}
	c, err := hub.Client()
	if err != nil {
		return err
	}
	err = c.Create(ctx, definition, client.FieldOwner(cli.FieldManager))
	if err != nil {
		return fmt.Errorf("create ApplicationDefinition/%s in %s: %w", definition.Name, hub.Name(), explainExists(hub.Explain(err), definition.Name))
	}
	fmt.Fprintf(o.env.Out, "ApplicationDefinition/%s created in %s\n", definition.Name, hub.Name())
	return nil
}
