package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/render/isolated"
	"waybill.dev/waybill/sync/render/values"
	"waybill.dev/waybill/sync/source/address"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/disk"
	"waybill.dev/waybill/sync/source/git"
)

// Sources fetches charts and repositories for one run of the program. Charts are kept in the user's
// cache for the next run.
type Sources struct {
	charts *chart.Cache
	git    *git.Store
	dir    string // removed by Close; empty for none

	local   Local
	offline bool

	// builder renders charts in processes of their own; nil for this process. folders renders all else.
	builder *isolated.Builder
	folders *render.Slots
}

// OpenSources returns sources; the caller must call Close. Local folders stand for what is at some
// addresses; offline, nothing else is fetched.
func OpenSources(local Local, offline bool) (*Sources, error) {
	return openSources(local, address.Guard{Offline: offline})
}

func openSources(local Local, guard address.Guard) (*Sources, error) {
	dir, err := os.MkdirTemp("", "waybill-")
	if err != nil {
		return nil, fmt.Errorf("make folder for sources: %w", err)
	}
	s := &Sources{dir: dir, local: local, offline: guard.Offline, folders: render.NewSlots(nil)}
	if s.git, err = git.NewStore(filepath.Join(dir, "git"), git.WithGuard(guard)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if cache, err := os.UserCacheDir(); err == nil {
		s.charts, _ = chart.NewCache(filepath.Join(cache, "waybill", "charts"), chart.WithGuard(guard)) // none may be made where nothing is written
	}
	if s.charts != nil {
		return s, nil
	}
	if s.charts, err = chart.NewCache(filepath.Join(dir, "charts"), chart.WithGuard(guard)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Isolated says where sources that last keep what they fetch, and where that may come from.
type Isolated struct {
	// Dir is the folder, and Bytes how much it may hold. Without one, charts are kept in the user's cache, and repositories
	// in a folder that Close removes.
	Dir   string
	Bytes int64
	// Refuse keeps sources from being on this machine, its link or its cloud provider's metadata service.
	Refuse bool
}

// OpenIsolated returns sources that last, for several users at a time: charts and kustomizations are rendered in
// processes of their own, as users who write values or manifests can make that take any time and memory. The program calls
// isolated.Main before anything else.
func OpenIsolated(o Isolated) (*Sources, error) {
	open, guard := openSources, address.Guard{Refuse: o.Refuse}
	if o.Dir != "" {
		open = o.open
	}
	s, err := open(nil, guard)
	if err != nil {
		return nil, err
	}
	s.builder = isolated.NewBuilder(isolated.Options{})
	s.folders = render.NewSlots(s.builder.Build)
	return s, nil
}

// open opens sources in the folder. What another process has left there is used.
func (o Isolated) open(local Local, guard address.Guard) (*Sources, error) {
	mirrors, charts := disk.Divide(o.Bytes)
	s := &Sources{local: local, offline: guard.Offline, folders: render.NewSlots(nil)}
	var err error
	if s.git, err = git.NewStore(filepath.Join(o.Dir, "git"), git.WithLimits(mirrors), git.WithGuard(guard)); err != nil {
		return nil, err
	}
	if s.charts, err = chart.NewCache(filepath.Join(o.Dir, "charts"), chart.WithLimits(charts), chart.WithGuard(guard)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Sweep removes the repositories that have not been used for that time.
func (s *Sources) Sweep(unused time.Duration) error {
	_, err := s.git.Sweep(unused)
	return err
}

// Close removes everything that need not be kept.
func (s *Sources) Close() error {
	return errors.Join(s.git.Close(), os.RemoveAll(s.dir))
}

// Charts returns what fetches charts.
func (s *Sources) Charts() *chart.Cache { return s.charts }

// files are those of a repository.
type files struct {
	fs.FS
	revision string // or the folder that stands for the repository
	close    func()
}

// open opens the files of a repository at a reference, or of the folder that stands for it; the caller
// closes them.
func (s *Sources) open(ctx context.Context, url string, ref *v1alpha1.GitReference, secret *contentData) (*files, error) {
	if s.local.stands(url) {
		root, err := s.local.open(url)
		if err != nil {
			return nil, err
		}
		return &files{FS: root.FS(), revision: root.Name(), close: func() { _ = root.Close() }}, nil // nothing was written
	}
	if s.offline {
		return nil, needsSource(url)
	}
	tree, err := s.tree(ctx, url, ref, secret)
	if err != nil {
		return nil, err
	}
	root, err := tree.FS("")
	if err != nil {
		tree.Close()
		return nil, err
	}
	return &files{FS: root, revision: tree.Revision().String(), close: tree.Close}, nil
}

// tree fetches a repository at a reference; the caller closes it.
func (s *Sources) tree(ctx context.Context, url string, ref *v1alpha1.GitReference, secret *contentData) (*git.Tree, error) {
	repository := git.Repository{URL: url}
	if secret != nil {
		credentials, err := git.CredentialsFromSecret(secret.data)
		if err != nil {
			return nil, fmt.Errorf("credentials of the source: %w", err)
		}
		repository.Credentials = credentials
	}
	revision, err := s.git.Resolve(ctx, repository, git.RefOf(ref))
	if err != nil {
		return nil, err
	}
	return s.git.Open(ctx, repository, revision)
}

// Defaults returns the values of the chart of a version, the lowest of all layers.
func (s *Sources) Defaults(ctx context.Context, r *Resolved) (values.Layer, error) {
	loaded, err := s.chart(ctx, r)
	if err != nil {
		return values.Layer{}, err
	}
	return values.Layer{From: "chart " + loaded.Name() + " " + loaded.Metadata.Version, Values: loaded.Values}, nil
}

// chart fetches the chart of a version.
func (s *Sources) chart(ctx context.Context, r *Resolved) (*chart.Chart, error) {
	source := r.Version.Template.Source
	if source.Git != nil {
		root, err := s.open(ctx, source.Git.Remote, source.Git.Ref, r.secrets.credentials)
		if err != nil {
			return nil, err
		}
		defer root.close()
		return s.chartIn(ctx, root.FS, source.Git.Path)
	}
	ref := chart.Reference{URL: source.Helm.URL, Name: source.Helm.ChartName, Version: source.Helm.ChartVersion}
	if s.local.stands(ref.URL) {
		return s.localChart(ctx, ref)
	}
	credentials := chart.Credentials{}
	if secret := r.secrets.credentials; secret != nil {
		var err error
		if credentials, err = chart.CredentialsFromSecret(secret.data); err != nil {
			return nil, fmt.Errorf("credentials of the source: %w", err)
		}
	}
	if secret := r.secrets.authorities; secret != nil {
		var err error
		if credentials.CAFile, err = chart.AuthoritiesFromSecret(secret.data); err != nil {
			return nil, fmt.Errorf("caSecretRef %s of the source: %w", source.Helm.CASecretRef.Name, err)
		}
	}
	credentials.PlainHTTP, credentials.InsecureSkipTLS = source.Helm.PlainHTTP, source.Helm.InsecureSkipTLS
	loaded, err := s.charts.Get(ctx, ref, credentials)
	return loaded, explainOffline(ref.URL, err)
}

// chartIn loads the chart of a folder, with its dependencies.
func (s *Sources) chartIn(ctx context.Context, root fs.FS, folder string) (*chart.Chart, error) {
	open := func(context.Context) (fs.FS, func(), error) { return root, func() {}, nil }
	loaded, err := s.charts.FromFS(ctx, chart.Tree{Open: open, Path: folder}, chart.Credentials{})
	if errors.As(err, new(*address.OfflineError)) {
		return nil, fmt.Errorf("%w: dependencies are not fetched with --offline: run `helm dependency build` before", err)
	}
	return loaded, err
}
