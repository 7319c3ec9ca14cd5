package applicationdefinition

import (
	"cmp"
	"slices"

	"github.com/Masterminds/semver/v3"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
)

// shown is how many versions, clusters or installations a text names.
const shown = 5

// summarize returns the versions of a definition for tables: newest first, those that are not
// semantic versions last, in the order of the spec. Deprecated ones are omitted unless there are no
// others.
func summarize(versions []v1alpha1.ApplicationVersion) string {
	var names, deprecated []string
	for _, v := range versions {
		if v.Deprecated {
			deprecated = append(deprecated, v.Version)
		} else {
			names = append(names, v.Version)
		}
	}
	if len(names) == 0 {
		names = deprecated
	}
	slices.SortStableFunc(names, newestFirst)
	return excerpt.Names(names, shown)
}

func newestFirst(a, b string) int {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	if errX == nil && errY == nil {
		return y.Compare(x)
	}
	return cmp.Compare(rank(errX), rank(errY))
}

// rank sorts versions that are not semantic versions behind those that are.
func rank(err error) int {
	if err != nil {
		return 1
	}
	return 0
}
