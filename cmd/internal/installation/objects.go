package installation

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/manifests"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/git"
)

// Objects are the objects that an installation, a chart or a GitSync renders to.
type Objects struct {
	// CRDs, Objects and Hooks are in the order in which they are written. Only charts have separate
	// CRDs and hooks.
	CRDs, Objects, Hooks []manifest.Object

	// Problems are files and documents that could not be used.
	Problems []manifest.Problem

	// Warnings list what was not checked.
	Warnings []string

	// Source names what everything was rendered from, e.g. `web 1.1.0` or a git revision.
	Source string
}

// Options set what charts see of the cluster, and how objects are marked.
type Options struct {
	// KubeVersion and APIVersions of the cluster; empty for defaults.
	KubeVersion string
	APIVersions []string

	// Cluster is where templates look objects up, if the installation lets them; nil if they find none.
	Cluster *rest.Config

	// Revision of the release, from 1; a higher one is an upgrade.
	Revision int

	// Stamp is put on every object; empty for none.
	Stamp helm.Stamp
}

// Render renders the objects of an installation.
func (s *Sources) Render(ctx context.Context, r *Resolved, o Options) (*Objects, error) {
	if r.Definition.GetMethod() == v1alpha1.MethodKustomize {
		return s.renderFolder(ctx, r)
	}
	loaded, err := s.chart(ctx, r)
	if err != nil {
		return nil, err
	}
	release := helm.Options{
		ReleaseName: r.Installation.Name, Namespace: r.Namespace, Values: r.Values,
		KubeVersion: o.KubeVersion, APIVersions: o.APIVersions, Cluster: o.Cluster, Revision: o.Revision, Stamp: o.Stamp,
	}
	unseen := noCluster
	if !r.LooksUp() {
		release.Cluster = nil
		unseen = fmt.Sprintf("which it finds none of in an installation that acts as no ServiceAccount: set spec.serviceAccountName, or spec.allowLookup of ApplicationDefinition %s", r.Definition.Name)
	}
	objects, err := s.renderChart(ctx, loaded, release, unseen)
	if err == nil && r.HelmOptions().GetCRDs() == v1alpha1.CRDSkip {
		objects.CRDs = nil
	}
	return objects, err
}

// RenderChart renders the objects of a chart in a local folder.
func (s *Sources) RenderChart(ctx context.Context, folder string, o helm.Options) (*Objects, error) {
	dir, within, err := manifests.WorkingCopy(folder)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", folder, err)
	}
	root, err := os.OpenRoot(dir) // links do not lead out of it
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", folder, err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	loaded, err := s.chartIn(ctx, root.FS(), within)
	if err != nil {
		return nil, fmt.Errorf("load chart: %w", err)
	}
	return s.renderChart(ctx, loaded, o, noCluster)
}

// RenderFolder renders the objects of a local folder as a GitSync does those of a repository. ignore
// holds lines in the format of .gitignore.
func RenderFolder(folder, ignore string) (*Objects, error) {
	objects, problems, err := manifests.Folder(folder, ignore)
	if err != nil {
		return nil, err
	}
	return &Objects{Objects: objects, Problems: problems, Source: folder}, nil
}

// noCluster is why templates find nothing where no cluster is named.
const noCluster = "and without one it finds none: name the cluster with --cluster"

// renderChart renders a chart; unseen says why its templates find no objects of a cluster, if they do not.
func (s *Sources) renderChart(ctx context.Context, loaded *chart.Chart, o helm.Options, unseen string) (*Objects, error) {
	result, err := s.rendered(ctx, loaded, o)
	if err != nil {
		return nil, err
	}
	warnings := result.Warnings
	if template := helm.LookingUp(loaded.Chart); template != "" && o.Cluster == nil {
		warnings = append(warnings, template+" looks up objects of the cluster, "+unseen)
	}
	return &Objects{
		CRDs: result.CRDs, Objects: result.Objects, Hooks: result.Hooks,
		Warnings: warnings, Source: loaded.Name() + " " + loaded.Metadata.Version,
	}, nil
}

// rendered renders a chart, in a process of its own if there is a builder.
func (s *Sources) rendered(ctx context.Context, loaded *chart.Chart, o helm.Options) (*helm.Result, error) {
	if s.builder == nil {
		return helm.Render(ctx, loaded.Chart, o)
	}
	checked, err := s.builder.Validate(ctx, loaded.Chart, o.Values)
	if err != nil {
		return nil, err
	}
	rendered, err := s.builder.Render(ctx, loaded.Chart, o)
	if err != nil {
		return nil, err
	}
	return rendered.Objects(loaded.Chart, checked.CRDs, o.Stamp)
}

// renderFolder renders the objects for method kustomize.
func (s *Sources) renderFolder(ctx context.Context, r *Resolved) (*Objects, error) {
	source := r.Version.Template.Source.Git
	if source == nil {
		return nil, fmt.Errorf("version %s of ApplicationDefinition %s: method kustomize needs a git source", r.Version.Version, r.Definition.Name)
	}
	return s.folder(ctx, folderSource{url: source.Remote, ref: source.Ref, path: source.Path, secret: r.secrets.credentials})
}

// RenderSync renders the objects that a GitSync delivers.
func (s *Sources) RenderSync(ctx context.Context, l *Lookup, gs *v1alpha1.GitSync) (*Objects, error) {
	source := folderSource{url: gs.Spec.URL, ref: gs.Spec.Ref, path: gs.Spec.Path, ignore: gs.GetIgnore()}
	if ref := gs.Spec.SecretRef; ref != nil && !s.local.stands(gs.Spec.URL) {
		var err error
		key := client.ObjectKey{Namespace: gs.Namespace, Name: ref.Name}
		if source.secret, err = l.content(ctx, l.Target, "Secret", key); err != nil {
			return nil, fmt.Errorf("spec.secretRef: %w", err)
		}
		if source.secret == nil {
			return nil, fmt.Errorf("spec.secretRef: Secret %s does not exist", key)
		}
	}
	return s.folder(ctx, source)
}

// CommitOf returns what the commit says of itself that a GitSync has applied.
func (s *Sources) CommitOf(ctx context.Context, l *Lookup, gs *v1alpha1.GitSync) (git.Commit, error) {
	revision, ok := git.ParseRevision(gs.Status.Revision)
	if !ok {
		return git.Commit{}, errors.New("no commit is applied yet")
	}
	repository := git.Repository{URL: gs.Spec.URL}
	if ref := gs.Spec.SecretRef; ref != nil {
		key := client.ObjectKey{Namespace: gs.Namespace, Name: ref.Name}
		secret, err := l.content(ctx, l.Target, "Secret", key)
		switch {
		case err != nil:
			return git.Commit{}, fmt.Errorf("spec.secretRef: %w", err)
		case secret == nil:
			return git.Commit{}, fmt.Errorf("spec.secretRef: Secret %s does not exist", key)
		}
		if repository.Credentials, err = git.CredentialsFromSecret(secret.data); err != nil {
			return git.Commit{}, fmt.Errorf("spec.secretRef: %w", err)
		}
	}
	tree, err := s.git.Open(ctx, repository, revision)
	if err != nil {
		return git.Commit{}, err
	}
	defer tree.Close()
	return tree.Commit()
}

// folderSource is a folder of a git repository.
type folderSource struct {
	url, path, ignore string
	ref               *v1alpha1.GitReference
	secret            *contentData
}

func (s *Sources) folder(ctx context.Context, from folderSource) (*Objects, error) {
	root, err := s.open(ctx, from.url, from.ref, from.secret)
	if err != nil {
		return nil, err
	}
	defer root.close()
	objects, problems, err := s.folders.Folder(ctx, root.FS, from.path, from.ignore)
	if err != nil {
		return nil, fmt.Errorf("%w at %s", err, root.revision)
	}
	return &Objects{Objects: objects, Problems: problems, Source: root.revision}, nil
}
