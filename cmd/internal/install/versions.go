package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/output"
)

// NewVersions returns the command `versions`.
func NewVersions(env *cli.Env) *cobra.Command {
	format := output.NewFormat("wide")
	cmd := &cobra.Command{
		Use:   "versions DEFINITION",
		Short: "Show the versions of an application that the catalog offers",
		Long: `Show the versions of an ApplicationDefinition as its cluster offers it: which is the default, which are
deprecated, what each is made of, and which installations use it.

In the hub, those of all clusters are shown, as CLUSTER-NAMESPACE/CLUSTER/NAMESPACE/NAME; in a user
cluster, its own, as far as you may list them, and not what a version is made of, which only the hub
knows. Ends with exit code 2 if there is no such definition, and names those that are like it.`,
		Example: `  # What can be installed
  waybill versions web --cluster berlin

  # Who uses what
  waybill versions web -o wide`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Names(env, v1alpha1.ApplicationDefinitionKind),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showVersions(cmd.Context(), env, format, args[0])
		},
	}
	format.AddFlag(cmd)
	return cmd
}

// OfferedVersion is a version of a definition, with who uses it.
type OfferedVersion struct {
	Version       string   `json:"version"`
	Default       bool     `json:"default,omitempty"`
	Deprecated    bool     `json:"deprecated,omitempty"`
	Source        string   `json:"source,omitempty"`
	Count         int32    `json:"count"`
	Installations []string `json:"installations,omitempty"`
}

func showVersions(ctx context.Context, env *cli.Env, format *output.Format, name string) error {
	s, err := newSession(ctx, env)
	if err != nil {
		return err
	}
	if strings.Contains(name, "/") {
		key, err := s.resolve(ctx, v1alpha1.ApplicationDefinitionKind, name)
		if err != nil {
			return err
		}
		name = key.Name
	}
	definition, err := s.Definition(ctx, name)
	if err != nil {
		return err
	}
	used, err := s.Usage(ctx, definition)
	if errors.Is(err, errUnknown) {
		env.Warnf("which installations use the versions is not known: you may not list them in cluster %s", s.Target.Name())
	} else if err != nil {
		return err
	}
	versions := Versions(definition, used)
	if format.Structured() {
		return format.Print(env.Out, versions)
	}
	wide := format.String() == "wide"
	table := output.NewTable("Version", "Default", "Deprecated", "Source", "Used By")
	for _, v := range versions {
		who := excerptOf(v, wide)
		if err != nil {
			who = "<unknown>"
		}
		output.AddRow(table, v.Version, yes(v.Default), yes(v.Deprecated), v.Source, who)
	}
	return output.PrintTable(env.Out, table, output.TableOptions{Wide: wide})
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

// excerptOf returns who uses a version, for a cell.
func excerptOf(v OfferedVersion, wide bool) string {
	const some = 3
	names := v.Installations
	if !wide && len(names) > some {
		names = names[:some]
	}
	text := strings.Join(names, ", ")
	if more := int(v.Count) - len(names); more > 0 && text != "" {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// errUnknown says that the user may not see who uses a version.
var errUnknown = errors.New("not known")

// Usage returns which installations use each version of a definition: as its status says or, of a copy,
// those of its cluster.
func (s *Session) Usage(ctx context.Context, definition *v1alpha1.ApplicationDefinition) ([]v1alpha1.VersionUsage, error) {
	if !definition.IsCopy() || len(definition.Status.UsedBy) > 0 {
		return definition.Status.UsedBy, nil
	}
	list := &v1alpha1.ApplicationInstallationList{}
	err := s.client.List(ctx, list)
	switch {
	case apierrors.IsForbidden(err):
		return nil, errUnknown
	case err != nil:
		return nil, fmt.Errorf("list ApplicationInstallations: %w", s.Target.Explain(err))
	}
	var used []v1alpha1.VersionUsage
	for i := range list.Items {
		inst := &list.Items[i]
		if inst.Spec.ApplicationRef.Name == definition.Name {
			used = append(used, v1alpha1.VersionUsage{
				Version: inst.GetVersion(definition), Count: 1, Installations: []string{inst.Namespace + "/" + inst.Name},
			})
		}
	}
	return used, nil
}

// Versions returns the versions of a definition in its order, with who uses them. Those that are used
// and not offered any more come last.
func Versions(definition *v1alpha1.ApplicationDefinition, used []v1alpha1.VersionUsage) []OfferedVersion {
	versions := []OfferedVersion{}
	for i := range definition.Spec.Versions {
		v := &definition.Spec.Versions[i]
		versions = append(versions, OfferedVersion{
			Version: v.Version, Default: v1alpha1.SameVersion(v.Version, definition.Spec.DefaultVersion), Deprecated: v.Deprecated, Source: sourceOf(v),
		})
	}
	for _, u := range used {
		at := slices.IndexFunc(versions, func(v OfferedVersion) bool { return v1alpha1.SameVersion(v.Version, u.Version) })
		if at < 0 {
			at = len(versions)
			versions = append(versions, OfferedVersion{Version: u.Version, Source: "not offered"})
		}
		versions[at].Count += u.Count
		versions[at].Installations = append(versions[at].Installations, u.Installations...)
		slices.Sort(versions[at].Installations)
	}
	return versions
}

// sourceOf returns what a version is made of; empty if that is not known.
func sourceOf(v *v1alpha1.ApplicationVersion) string {
	switch {
	case v.Template == nil:
		return ""
	case v.Template.Source.Helm != nil:
		return v.Template.Source.Helm.ChartName + "-" + v.Template.Source.Helm.ChartVersion
	case v.Template.Source.Git != nil:
		git := v.Template.Source.Git
		text := git.Remote
		if git.Path != "" {
			text += "//" + strings.Trim(git.Path, "/")
		}
		if ref := git.Ref; ref != nil {
			text += "@" + firstOf(ref.Commit, ref.Tag, ref.Branch)
		}
		return text
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
