package env

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/repo"
)

// HelmRepo is a Helm chart repository over HTTP.
type HelmRepo struct {
	httpServer
	dir    string
	writes sync.Mutex
}

// StartHelmRepo starts an empty chart repository.
func StartHelmRepo(access Access) (*HelmRepo, error) {
	dir, err := tempDir("helm-repo")
	if err != nil {
		return nil, err
	}
	r := &HelmRepo{dir: dir}
	if err := r.serve(access, http.FileServer(http.Dir(dir))); err != nil {
		return nil, fmt.Errorf("start Helm repository: %w", err)
	}
	return r, r.index()
}

// URL returns the repository's address, for a chart source's url.
func (r *HelmRepo) URL() string { return r.url() }

// Push applies the changes to the chart in dir, packages it with the dependencies that are in its
// charts folder or that its Chart.yaml names by file://, and updates the index. It returns the
// archive's name, relative to URL.
func (r *HelmRepo) Push(dir string, changes ...func(*chart.Chart)) (string, error) {
	c, err := loadChart(dir, changes)
	if err != nil {
		return "", err
	}
	r.writes.Lock()
	defer r.writes.Unlock()
	archive, err := chartutil.Save(c, r.dir)
	if err != nil {
		return "", fmt.Errorf("package chart %s: %w", dir, err)
	}
	return filepath.Base(archive), r.index()
}

// Write writes any file next to the archives, including index.yaml, as a lying repository would.
// The next Push writes the true index again.
func (r *HelmRepo) Write(name string, content []byte) error {
	r.writes.Lock()
	defer r.writes.Unlock()
	return r.replace(name, content)
}

func (r *HelmRepo) index() error {
	index, err := repo.IndexDirectory(r.dir, r.URL())
	if err != nil {
		return fmt.Errorf("index Helm repository: %w", err)
	}
	index.SortEntries()
	path := filepath.Join(r.dir, "index.yaml.new")
	if err := index.WriteFile(path, 0o600); err != nil {
		return fmt.Errorf("write index of Helm repository: %w", err)
	}
	return os.Rename(path, filepath.Join(r.dir, "index.yaml"))
}

// replace writes a file atomically, so that readers never see half of it.
func (r *HelmRepo) replace(name string, content []byte) error {
	path := filepath.Join(r.dir, filepath.Base(name))
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(path+".new", path)
}
