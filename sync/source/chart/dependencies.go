package chart

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// attachDependencies adds to c the dependencies that it declares and its charts folder lacks. It
// returns the digests of what it added.
func (r *treeReader) attachDependencies(ctx context.Context, c *chart.Chart, dir string, depth int64) ([][]byte, error) {
	var digests [][]byte
	for _, dep := range c.Metadata.Dependencies {
		if dep == nil || vendored(c, dep) {
			continue
		}
		sub, digest, err := r.dependency(ctx, c, dep, dir, depth)
		if err != nil {
			return nil, fmt.Errorf("dependency %s: %w", dep.Name, err)
		}
		replaceSubchart(c, sub)
		digests = append(digests, digest)
	}
	return digests, nil
}

// vendored reports whether c's charts folder holds the chart that dep asks for.
func vendored(c *chart.Chart, dep *chart.Dependency) bool {
	return slices.ContainsFunc(c.Dependencies(), func(sub *chart.Chart) bool { return fits(sub, dep) })
}

// fits implements Helm's rule for which chart a dependency means.
func fits(sub *chart.Chart, dep *chart.Dependency) bool {
	return sub.Name() == dep.Name && (dep.Version == "" || chartutil.IsCompatibleRange(dep.Version, sub.Metadata.Version))
}

// replaceSubchart adds sub, and drops unsuitable charts of the same name, which Helm would render
// too.
func replaceSubchart(c, sub *chart.Chart) {
	declared := c.Metadata.Dependencies
	kept := slices.DeleteFunc(slices.Clone(c.Dependencies()), func(old *chart.Chart) bool {
		return old.Name() == sub.Name() && !slices.ContainsFunc(declared, func(dep *chart.Dependency) bool { return dep != nil && fits(old, dep) })
	})
	c.SetDependencies(append(kept, sub)...)
}

func (r *treeReader) dependency(ctx context.Context, c *chart.Chart, dep *chart.Dependency, dir string, depth int64) (*chart.Chart, []byte, error) {
	switch {
	case strings.HasPrefix(dep.Repository, "file://"):
		return r.fileDependency(ctx, dep, dir, depth)
	case dep.Repository == "":
		return nil, nil, fmt.Errorf("%w: it is not in the charts folder, and names no repository", ErrInvalidChart)
	case strings.HasPrefix(dep.Repository, "@"), strings.HasPrefix(dep.Repository, "alias:"):
		return nil, nil, fmt.Errorf("%w: repository %q is an alias in a local Helm configuration; use its URL, or put the chart into the charts folder",
			ErrInvalidChart, dep.Repository)
	}
	ref, err := r.cache.resolve(ctx, Reference{URL: dep.Repository, Name: dep.Name, Version: lockedVersion(c, dep)}, r.cred)
	if err != nil {
		return nil, nil, err
	}
	digest, err := r.cache.fetch(ctx, ref, r.cred)
	if err != nil {
		return nil, nil, err
	}
	// Parsed again, not shared: a chart knows its parent.
	sub, _, err := r.cache.parseArchive(ctx, digest, r.budget)
	if err != nil {
		return nil, nil, err
	}
	if err := checkIdentity(sub, ref); err != nil {
		return nil, nil, err
	}
	return sub, []byte(digest), nil
}

// fileDependency loads a chart from elsewhere in the same repository.
func (r *treeReader) fileDependency(ctx context.Context, dep *chart.Dependency, dir string, depth int64) (*chart.Chart, []byte, error) {
	target := strings.TrimPrefix(dep.Repository, "file://")
	inside := path.Join(dir, target)
	if path.IsAbs(target) || !fs.ValidPath(inside) {
		return nil, nil, fmt.Errorf("%w: %s leaves the repository", ErrInvalidChart, dep.Repository)
	}
	sub, digest, err := r.load(ctx, inside, depth+1)
	if errors.Is(err, ErrNotFound) {
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrInvalidChart, dep.Repository, err)
	}
	if err != nil {
		return nil, nil, err
	}
	if !fits(sub, dep) {
		return nil, nil, fmt.Errorf("%w: %s holds %s %s, which is not %s %s",
			ErrInvalidChart, dep.Repository, sub.Name(), sub.Metadata.Version, dep.Name, dep.Version)
	}
	return sub, digest, nil
}

// lockedVersion returns the version that Chart.lock pins for dep if it still fits, otherwise the
// one that Chart.yaml asks for.
func lockedVersion(c *chart.Chart, dep *chart.Dependency) string {
	if c.Lock == nil {
		return dep.Version
	}
	for _, locked := range c.Lock.Dependencies {
		if locked != nil && locked.Name == dep.Name && locked.Repository == dep.Repository &&
			chartutil.IsCompatibleRange(dep.Version, locked.Version) {
			return locked.Version
		}
	}
	return dep.Version
}

// resolve turns a reference whose version may be a range into an exact one.
func (c *Cache) resolve(ctx context.Context, ref Reference, cred Credentials) (Reference, error) {
	if ref.Version == "" {
		ref.Version = "*"
	}
	if err := ref.validate(); err != nil {
		return ref, err
	}
	ref = ref.normalised()
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(ref.Version, "v")); err == nil {
		return ref, nil
	}
	versions, err := c.listed(ctx, ref, cred)
	if err != nil {
		return ref, err
	}
	ref.Version, err = newestMatch(ref.Name, ref.Version, versions)
	return ref, err
}
