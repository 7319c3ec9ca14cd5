package chart

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"waybill.dev/waybill/api/expansion"
)

// Chart is an installable chart with all its dependencies. It is shared by all callers and must not
// be changed. Helm's actions do change charts, so give them a copy.
type Chart struct {
	*chart.Chart
	// Digest is `sha256:` and the hash of the archive; for a directory, the hash of its files and
	// dependencies. Charts with the same digest render the same.
	Digest string
	// size is about how much memory it takes: the sum of the sizes of all files, and of its values.
	size int64
}

// valueBytes is how much memory a value takes, once it is decoded, beside its text.
const valueBytes = 64

// parse builds a chart from its files and checks that it can be parsed at all. The size is about how much
// memory it takes.
func parse(ctx context.Context, files []*loader.BufferedFile, b *budget) (*chart.Chart, int64, error) {
	values, err := checkDecoded(ctx, files, b)
	if err != nil {
		return nil, 0, err
	}
	size := values * valueBytes
	for _, f := range files {
		size += int64(len(f.Data))
	}
	parsed, err := loader.LoadFiles(files)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrInvalidChart, err)
	}
	dropRaw(parsed)
	return parsed, size, nil
}

// decoded matches the files that the loader decodes, in a chart and in those that it brings. All
// others are text to it, templates among them.
var decoded = regexp.MustCompile(`^(charts/[^/]*/)*((Chart|requirements)\.(yaml|lock)|values\.yaml)$`)

// checkDecoded rejects a chart with files that the loader would decode to more than fits into memory. It
// returns about how many values they hold.
func checkDecoded(ctx context.Context, files []*loader.BufferedFile, b *budget) (values int64, err error) {
	for _, f := range files {
		if !decoded.MatchString(f.Name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("read %s: %w", f.Name, err)
		}
		held := int64(expansion.Nodes(f.Data))
		values += held
		if b.values -= held; b.values < 0 {
			return 0, errTooLarge("number of values up to "+f.Name, "Values", b.limits.Values)
		}
		if err := expansion.Text(f.Data, expansion.Limits{}); err != nil {
			return 0, fmt.Errorf("%w: %s: %w", ErrInvalidChart, f.Name, err)
		}
	}
	return values, nil
}

// dropRaw drops the second list of all files that the loader keeps and nothing reads.
func dropRaw(c *chart.Chart) {
	c.Raw = nil
	for _, d := range c.Dependencies() {
		dropRaw(d)
	}
}

// checkInstallable rejects a library chart, and a chart that lacks a dependency that it declares.
func checkInstallable(c *chart.Chart) error {
	if strings.EqualFold(c.Metadata.Type, "library") {
		return fmt.Errorf("%w: %s is a library chart, which cannot be installed by itself", ErrInvalidChart, c.Name())
	}
	for _, dep := range c.Metadata.Dependencies {
		if dep != nil && !slices.ContainsFunc(c.Dependencies(), func(sub *chart.Chart) bool { return sub.Name() == dep.Name }) {
			return fmt.Errorf("%w: %s declares the dependency %s %s, and its charts folder does not hold it",
				ErrInvalidChart, c.Name(), dep.Name, dep.Version)
		}
	}
	return nil
}

// checkIdentity ensures that an archive holds the chart that was asked for.
func checkIdentity(c *chart.Chart, ref Reference) error {
	if c.Name() != ref.Name {
		return fmt.Errorf("%w: %s: archive holds the chart %s", ErrInvalidChart, ref, c.Name())
	}
	want, err := semver.NewVersion(ref.Version)
	if err != nil {
		return nil
	}
	if have, err := semver.NewVersion(c.Metadata.Version); err != nil || !have.Equal(want) {
		return fmt.Errorf("%w: %s: archive holds version %s", ErrInvalidChart, ref, c.Metadata.Version)
	}
	return nil
}
