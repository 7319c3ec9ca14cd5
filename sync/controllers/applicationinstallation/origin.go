package applicationinstallation

import (
	"context"
	"io/fs"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/git"
)

// origin is where a version comes from, with the credentials and the authorities for it; each nil without a
// reference.
type origin struct {
	version     *v1alpha1.ApplicationVersion
	credentials *content.Content
	authorities *content.Content
}

// url identifies the server, so that jobs that contact the same one share a lane.
func (s origin) url() string {
	if helm := s.version.Template.Source.Helm; helm != nil {
		return helm.URL
	}
	return s.version.Template.Source.Git.Remote
}

// moves reports whether the source can change without a change of the definition.
func (s origin) moves() bool {
	git := s.version.Template.Source.Git
	return git != nil && (git.Ref == nil || git.Ref.Commit == "")
}

// fetchChart fetches a chart from a Helm repository or a registry.
func (r *Reconciler) fetchChart(ctx context.Context, s origin) (*files, error) {
	helm := s.version.Template.Source.Helm
	credentials := chart.Credentials{}
	if s.credentials != nil {
		var err error
		if credentials, err = chart.CredentialsFromSecret(s.credentials.Data); err != nil {
			return nil, reconcile.Waiting(v1alpha1.InvalidSecretReason, 0, "source credentials: %w", err)
		}
	}
	if s.authorities != nil {
		var err error
		if credentials.CAFile, err = chart.AuthoritiesFromSecret(s.authorities.Data); err != nil {
			return nil, reconcile.Waiting(v1alpha1.InvalidSecretReason, 0, "caSecretRef %s: %w", helm.CASecretRef.Name, err)
		}
	}
	credentials.PlainHTTP, credentials.InsecureSkipTLS = helm.PlainHTTP, helm.InsecureSkipTLS
	got, err := r.Charts.Get(ctx, chart.Reference{URL: helm.URL, Name: helm.ChartName, Version: helm.ChartVersion}, credentials)
	if err != nil {
		return nil, chartError(err)
	}
	return &files{revision: got.Metadata.Version, chart: got}, nil
}

// openTree opens the tree of a git source at a revision or, if that is zero, at the one that its
// reference points at now. The caller must close it.
func (r *Reconciler) openTree(ctx context.Context, s origin, revision git.Revision) (*git.Tree, git.Revision, error) {
	if revision.Commit == "" {
		var err error
		if revision, err = r.resolveGit(ctx, s); err != nil {
			return nil, git.Revision{}, err
		}
	}
	repository, err := s.repository()
	if err != nil {
		return nil, git.Revision{}, err
	}
	tree, err := r.Git.Open(ctx, repository, revision)
	if err != nil {
		return nil, git.Revision{}, gitError(err)
	}
	return tree, revision, nil
}

// resolveGit returns the revision that the reference of a git source points at now.
func (r *Reconciler) resolveGit(ctx context.Context, s origin) (git.Revision, error) {
	repository, err := s.repository()
	if err != nil {
		return git.Revision{}, err
	}
	revision, err := r.Git.Resolve(ctx, repository, git.RefOf(s.version.Template.Source.Git.Ref))
	if err != nil {
		return git.Revision{}, gitError(err)
	}
	return revision, nil
}

// repository returns a git source with its credentials.
func (s origin) repository() (git.Repository, error) {
	repository := git.Repository{URL: s.version.Template.Source.Git.Remote}
	if s.credentials == nil {
		return repository, nil
	}
	credentials, err := git.CredentialsFromSecret(s.credentials.Data)
	if err != nil {
		return repository, reconcile.Waiting(v1alpha1.InvalidSecretReason, 0, "source credentials: %w", err)
	}
	repository.Credentials = credentials
	return repository, nil
}

// fetchChartFromGit loads a chart, with its dependencies, from a folder of a repository.
func (r *Reconciler) fetchChartFromGit(ctx context.Context, s origin) (*files, error) {
	revision, err := r.resolveGit(ctx, s)
	if err != nil {
		return nil, err
	}
	from := s.version.Template.Source.Git
	known := from.Remote + "@" + revision.Commit
	if s.credentials != nil {
		known += " with " + s.credentials.Hash
	}
	// Opened by the job that loads the chart, for all that wait for it: this installation may be gone, or
	// out of time, before the others are.
	open := func(ctx context.Context) (fs.FS, func(), error) {
		tree, _, err := r.openTree(ctx, s, revision)
		if err != nil {
			return nil, nil, err
		}
		root, err := tree.FS("")
		if err != nil {
			tree.Close()
			return nil, nil, gitError(err)
		}
		return root, tree.Close, nil
	}
	got, err := r.Charts.FromFS(ctx, chart.Tree{Open: open, Path: from.Path, Revision: known}, chart.Credentials{})
	if err != nil {
		return nil, chartError(err)
	}
	return &files{revision: revision.String(), git: revision, chart: got}, nil
}

// chartError adds the reason to an error of a chart source, unless the repository that the chart
// lies in has given one.
func chartError(err error) error {
	if reconcile.ReasonOf(err) != "" {
		return err
	}
	return reconcile.Failed(chart.Reason(err), "%w", err)
}

// gitError adds the reason to an error of a git source.
func gitError(err error) error { return reconcile.Failed(git.Reason(err), "%w", err) }
