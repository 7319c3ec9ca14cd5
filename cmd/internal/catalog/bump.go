package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/delivered"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/sync/source/chart"
)

// bumping are the flags of the command `catalog bump`.
type bumping struct {
	access

	env        *cli.Env
	files      []string
	constraint string
	allowed    *semver.Constraints
	limit      int
	dryRun     bool
	force      bool
}

func newBump(env *cli.Env) *cobra.Command {
	o := &bumping{env: env}
	cmd := &cobra.Command{
		Use:   "bump DEFINITION | -f FILE...",
		Short: "Add the versions of a chart that have appeared since",
		Long: `Add to a definition the versions of its chart that have appeared in the repository since the newest
one that it offers, newest first: to an ApplicationDefinition of the hub, or to the definitions in
YAML files, in place. In a file, nothing else changes, comments and blank lines included. What a new version is made of
is copied from the newest one that is there: repository, credentials and values.

Versions that are there stay as they are, none is deprecated, and the default version stays. Pre-releases
are left out, unless the newest version is one. The repository is accessed with --username, or the
credentials that the definition names, which are read from the hub.`,
		Example: `  # Of the files of a catalog, and commit what has changed
  waybill catalog bump -f catalog/web.yaml -f catalog/mysql.yaml --constraint '^1'

  # What would be added to a definition of the hub
  waybill catalog bump web --dry-run`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.Names(env, v1alpha1.ApplicationDefinitionKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "YAML file with definitions to change in place")
	flags.StringVar(&o.constraint, "constraint", "", "Range of versions to add, as ^1 or >=1.2 <2; any unless given")
	flags.IntVar(&o.limit, "limit", 5, "How many versions to add to a definition at most, the newest ones")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Say which versions would be added, and write nothing")
	flags.BoolVar(&o.force, "force", false, "Also change a definition of the hub that a GitSync delivers, and puts back")
	o.addFlags(cmd)
	return cmd
}

func (o *bumping) run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0 && len(o.files) == 0, len(args) > 0 && len(o.files) > 0:
		return errors.New("name a definition of the hub, or files with -f")
	case o.limit < 1:
		return errors.New("--limit must be 1 or more")
	}
	if o.constraint != "" {
		var err error
		if o.allowed, err = semver.NewConstraint(o.constraint); err != nil {
			return fmt.Errorf("--constraint %s is not a range of versions, as ^1 or >=1.2 <2: %w", o.constraint, err)
		}
	}
	credentials, err := o.credentials(o.env.In) // once, for all files
	if err != nil {
		return err
	}
	sources, err := installation.OpenSources(nil, false)
	if err != nil {
		return err
	}
	defer func() { _ = sources.Close() }() // a failure to clean up is not worth an error
	f := &finder{bumping: o, charts: sources.Charts(), given: credentials}
	if len(args) > 0 {
		return f.ofHub(ctx, args[0])
	}
	for _, file := range o.files {
		if err := f.ofFile(ctx, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// finder finds the versions to add to definitions.
type finder struct {
	*bumping

	charts *chart.Cache
	given  chart.Credentials
}

// newest returns the place of the newest version of a definition that is a chart of a repository; -1 if
// there is none.
func newest(definition *v1alpha1.ApplicationDefinition) int {
	at := -1
	var highest *semver.Version
	for i := range definition.Spec.Versions {
		v := &definition.Spec.Versions[i]
		if v.Template == nil || v.Template.Source.Helm == nil {
			continue
		}
		version, err := semver.NewVersion(v.Template.Source.Helm.ChartVersion)
		if err == nil && (highest == nil || version.GreaterThan(highest)) {
			at, highest = i, version
		}
	}
	return at
}

// found returns the versions to add to a definition, newest first, and the place of the version that they
// are copied from.
func (f *finder) found(ctx context.Context, definition *v1alpha1.ApplicationDefinition) (versions []string, from int, err error) {
	from = newest(definition)
	if from < 0 {
		return nil, from, errors.New("no version is a chart of a Helm repository or registry")
	}
	template := &definition.Spec.Versions[from]
	source := template.Template.Source.Helm
	if !v1alpha1.SameVersion(template.Version, source.ChartVersion) {
		f.env.Warnf("ApplicationDefinition %s calls version %s of the chart %s: what is added is called as the chart calls it", definition.Name, source.ChartVersion, template.Version)
	}
	credentials := f.given
	if credentials.Username == "" {
		anonymous := access{}
		if credentials, err = anonymous.credentialsFor(ctx, f.env, source); err != nil {
			return nil, from, err
		}
	}
	credentials.PlainHTTP, credentials.InsecureSkipTLS = source.PlainHTTP, source.InsecureSkipTLS
	all, err := f.charts.Versions(ctx, chart.Reference{URL: source.URL, Name: source.ChartName}, credentials)
	if err != nil {
		return nil, from, err
	}
	for _, version := range all {
		if f.adds(definition, source.ChartVersion, version) {
			versions = append(versions, version)
		}
	}
	if room := maxVersions - len(definition.Spec.Versions); len(versions) > min(f.limit, room) {
		f.env.Warnf("ApplicationDefinition %s: %s left out, as --limit and the limit of %d versions say",
			definition.Name, output.Count(len(versions)-min(f.limit, room), "older version"), maxVersions)
		versions = versions[:max(0, min(f.limit, room))]
	}
	return versions, from, nil
}

// adds reports whether a version of the repository is to be added.
func (f *finder) adds(definition *v1alpha1.ApplicationDefinition, above, version string) bool {
	has, err := semver.NewVersion(above)
	if err != nil {
		return false
	}
	v, err := semver.NewVersion(version)
	switch {
	case err != nil, !v.GreaterThan(has), v.Prerelease() != "" && has.Prerelease() == "":
		return false
	case f.allowed != nil && !f.allowed.Check(v):
		return false
	}
	return definition.GetVersion(version) == nil
}

// tell prints what was, or would be, added.
func (f *finder) tell(what string, versions []string) {
	switch {
	case len(versions) == 0:
		fmt.Fprintf(f.env.Out, "%s: no newer versions\n", what)
	case f.dryRun:
		fmt.Fprintf(f.env.Out, "%s: would add %s\n", what, strings.Join(versions, ", "))
	default:
		fmt.Fprintf(f.env.Out, "%s: added %s\n", what, strings.Join(versions, ", "))
	}
}

// ofHub adds versions to a definition of the hub.
func (f *finder) ofHub(ctx context.Context, name string) error {
	hub, err := f.env.Hub()
	if err != nil {
		return err
	}
	c, err := hub.Client()
	if err != nil {
		return err
	}
	definition := &v1alpha1.ApplicationDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
		return fmt.Errorf("get ApplicationDefinition %s: %w", name, hub.Explain(err))
	}
	what := "ApplicationDefinition/" + name
	if definition.IsCopy() {
		return fmt.Errorf("%s is a copy: use a kubeconfig of the hub", what)
	}
	versions, from, err := f.found(ctx, definition)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if len(versions) == 0 || f.dryRun {
		f.tell(what, versions)
		return nil
	}
	at := fleet.NewPlace(hub, hub, f.env.SystemNamespace, f.env.Warnf)
	if err := delivered.Check(ctx, at, what, definition, f.force); err != nil {
		return err
	}
	before := definition.DeepCopy()
	var added []v1alpha1.ApplicationVersion
	for _, version := range versions {
		one := *definition.Spec.Versions[from].DeepCopy()
		one.Version, one.Deprecated, one.Template.Source.Helm.ChartVersion = version, false, version
		added = append(added, one)
	}
	definition.Spec.Versions = slices.Concat(added, definition.Spec.Versions)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, definition, patch, client.FieldOwner(cli.FieldManager)); err != nil {
		return fmt.Errorf("change %s: %w", what, hub.Explain(err))
	}
	f.tell(what, versions)
	return nil
}
