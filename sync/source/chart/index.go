package chart

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// index is the small part of a repository's index.yaml that we need. It is shared and never
// changed.
type index struct {
	charts map[string][]release
	// cost is the approximate memory that the index takes, in bytes.
	cost int64
}

// release is one version of a chart in an index.
type release struct {
	version string
	url     string
	// digest is the hex SHA-256 of the archive, or empty if the index does not have it.
	digest string
}

// find returns the release with exactly that version, or one that is equal as semver.
func (x *index) find(name, version string) (release, error) {
	releases, ok := x.charts[name]
	if !ok || len(releases) == 0 {
		return release{}, fmt.Errorf("%w: repository has no chart %s%s", ErrNotFound, name, didYouMean("charts", x.similar(name)))
	}
	versions := make([]string, len(releases))
	for i, r := range releases {
		versions[i] = r.version
	}
	found, err := matchVersion(name, version, versions)
	if err != nil {
		return release{}, err
	}
	return releases[slices.Index(versions, found)], nil
}

// similar lists names that resemble name, or all names if there are few.
func (x *index) similar(name string) []string {
	var all, like []string
	for other := range x.charts {
		all = append(all, other)
		if strings.Contains(other, name) || strings.Contains(name, other) {
			like = append(like, other)
		}
	}
	if len(like) == 0 && len(all) <= maxSuggestions {
		like = all
	}
	slices.Sort(like)
	return like[:min(len(like), maxSuggestions)]
}

// maxSuggestions is how many alternatives an error lists.
const maxSuggestions = 5

func didYouMean(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; it has the %s %s", what, strings.Join(names, ", "))
}

// matchVersion picks version from versions: the same string, otherwise one that is equal as semver.
// The error lists the nearest.
func matchVersion(name, version string, versions []string) (string, error) {
	if slices.Contains(versions, version) {
		return version, nil
	}
	if want, err := semver.NewVersion(version); err == nil {
		for _, v := range versions {
			if have, err := semver.NewVersion(v); err == nil && have.Equal(want) && have.Metadata() == want.Metadata() {
				return v, nil
			}
		}
	}
	return "", fmt.Errorf("%w: chart %s has no version %s%s",
		ErrNotFound, name, version, didYouMean("versions", nearestVersions(version, versions)))
}

// newestMatch picks the highest of versions that constraint allows, like `helm dependency update`.
func newestMatch(name, constraint string, versions []string) (string, error) {
	allowed, err := semver.NewConstraint(constraint)
	if err != nil {
		return "", fmt.Errorf("%w: version %q of dependency %s is neither a version nor a range of versions", ErrInvalidChart, constraint, name)
	}
	var best *semver.Version
	for _, v := range versions {
		have, err := semver.NewVersion(v)
		if err == nil && allowed.Check(have) && (best == nil || have.GreaterThan(best)) {
			best = have
		}
	}
	if best == nil {
		return "", fmt.Errorf("%w: chart %s has no version within %q%s",
			ErrNotFound, name, constraint, didYouMean("versions", nearestVersions("", versions)))
	}
	return best.Original(), nil
}

// nearestVersions lists a few of versions around version in their order, newest first. If version
// is not a valid version, it lists the newest.
func nearestVersions(version string, versions []string) []string {
	var sorted []*semver.Version
	for _, v := range versions {
		if parsed, err := semver.NewVersion(v); err == nil {
			sorted = append(sorted, parsed)
		}
	}
	slices.SortFunc(sorted, func(a, b *semver.Version) int { return b.Compare(a) })
	first := 0
	if want, err := semver.NewVersion(version); err == nil {
		at, _ := slices.BinarySearchFunc(sorted, want, func(a, b *semver.Version) int { return b.Compare(a) })
		first = max(0, min(at-maxSuggestions/2, len(sorted)-maxSuggestions))
	}
	var names []string
	for _, v := range sorted[first:min(first+maxSuggestions, len(sorted))] {
		names = append(names, v.Original())
	}
	return names
}
