package chart

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Versions returns the versions of a chart that its repository or registry has now, newest first. Those
// that are no semantic versions are left out, since no chart has them: tags of a registry may be
// anything. The version of ref is not used. Errors are those of Get.
func (c *Cache) Versions(ctx context.Context, ref Reference, cred Credentials) ([]string, error) {
	ref.Version = "0" // any will do
	if err := ref.validate(); err != nil {
		return nil, err
	}
	if err := cred.validate(); err != nil {
		return nil, err
	}
	ref = ref.normalised()
	listed, err := c.listed(ctx, ref, cred)
	if err != nil {
		return nil, err
	}
	var versions []*semver.Version
	for _, name := range listed {
		if v, err := semver.NewVersion(name); err == nil {
			versions = append(versions, v)
		}
	}
	slices.SortStableFunc(versions, func(a, b *semver.Version) int { return b.Compare(a) })
	var names []string
	for _, v := range versions {
		if !slices.Contains(names[max(0, len(names)-1):], v.Original()) {
			names = append(names, v.Original())
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: chart %s of %s has no versions", ErrNotFound, ref.Name, redact(ref.URL))
	}
	return names, nil
}

// listed returns the versions of a chart as they are listed.
func (c *Cache) listed(ctx context.Context, ref Reference, cred Credentials) ([]string, error) {
	if ref.isOCI() {
		address := ref.URL + "/" + ref.Name
		repo, s, err := c.openRegistry(ctx, address, cred)
		if err != nil {
			return nil, err
		}
		defer s.close()
		return c.listVersions(ctx, repo, address)
	}
	idx, _, err := c.index(ctx, ref.URL, cred, true)
	if err != nil {
		return nil, err
	}
	releases := idx.charts[ref.Name]
	if len(releases) == 0 {
		return nil, fmt.Errorf("%w: repository has no chart %s%s", ErrNotFound, ref.Name, didYouMean("charts", idx.similar(ref.Name)))
	}
	var names []string
	for _, r := range releases {
		names = append(names, r.version)
	}
	return names, nil
}

// FromArchive loads a chart from a packed archive, within the limits of one that is fetched.
func (c *Cache) FromArchive(ctx context.Context, r io.Reader) (*Chart, error) {
	limited := &limitedReader{r: r, left: c.limits.ArchiveBytes, err: errTooLarge("archive", "ArchiveBytes", c.limits.ArchiveBytes)}
	b := newBudget(c.limits)
	files, err := unpack(ctx, limited, b)
	if err != nil {
		return nil, err
	}
	parsed, size, err := parse(ctx, files, b)
	if err != nil {
		return nil, err
	}
	return &Chart{Chart: parsed, size: size}, checkInstallable(parsed)
}

// Split returns the repository and the name of a chart that is named by its whole address in a registry.
func Split(address string) Reference {
	address = strings.TrimRight(address, "/")
	i := strings.LastIndex(address, "/")
	if i < len("oci://") {
		return Reference{URL: address}
	}
	return Reference{URL: address[:i], Name: address[i+1:]}
}
