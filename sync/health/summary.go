package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
)

const (
	// MaxUnhealthy is how many unhealthy objects a Summary names.
	MaxUnhealthy = 20
	// maxInMessage is how many of them its String names.
	maxInMessage = 3
	// maxMessage bounds the message of one of them, in bytes.
	maxMessage = 512
)

// Item is the health of one object.
type Item struct {
	ID      manifest.ID
	Status  Status
	Message string
}

// Summary summarizes the health of many objects. The zero value is the summary of no objects, which
// is healthy.
type Summary struct {
	// Total is the number of objects.
	Total int
	// Counts is the number of objects of each status that occurs.
	Counts map[Status]int
	// Unhealthy lists objects that are not Current: the worst first, then by kind, namespace and
	// name, and at most MaxUnhealthy of them.
	Unhealthy []Item
}

// Summarize summarizes items. Equal items in any order give an equal Summary. It sorts items in
// place.
func Summarize(items []Item) Summary {
	s := Summary{Total: len(items)}
	if len(items) == 0 {
		return s
	}
	s.Counts = make(map[Status]int)
	slices.SortFunc(items, compareItems)
	for _, item := range items {
		s.Counts[item.Status]++
		if item.Status != Current && len(s.Unhealthy) < MaxUnhealthy {
			item.Message = excerpt.Of(item.Message, maxMessage)
			s.Unhealthy = append(s.Unhealthy, item)
		}
	}
	return s
}

// compareItems orders the worst first.
func compareItems(a, b Item) int {
	return cmp.Or(
		cmp.Compare(severity[b.Status], severity[a.Status]),
		cmp.Compare(a.ID.Kind, b.ID.Kind),
		cmp.Compare(a.ID.Group, b.ID.Group),
		cmp.Compare(a.ID.Namespace, b.ID.Namespace),
		cmp.Compare(a.ID.Name, b.ID.Name),
	)
}

// Healthy reports whether every object is Current.
func (s Summary) Healthy() bool { return s.Counts[Current] == s.Total }

// Failed reports whether an object has failed, so that waiting alone will not help.
func (s Summary) Failed() bool { return s.Counts[Failed] > 0 }

// String returns the summary in one line for a condition: how many are healthy, and the worst of
// those that are not.
func (s Summary) String() string {
	if s.Healthy() {
		if s.Total == 1 {
			return "its object is healthy"
		}
		return fmt.Sprintf("all %s are healthy", excerpt.Count(s.Total, "object"))
	}
	bad := s.Total - s.Counts[Current]
	var names []string
	for _, item := range s.Unhealthy[:min(len(s.Unhealthy), maxInMessage)] {
		names = append(names, item.String())
	}
	are := "are"
	if bad == 1 {
		are = "is"
	}
	text := fmt.Sprintf("%s of %s %s not healthy: %s", excerpt.Amount(bad), excerpt.Count(s.Total, "object"), are, strings.Join(names, "; "))
	if more := bad - len(names); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// String returns `Deployment.apps shop/web is InProgress: Replicas: 0/1`.
func (i Item) String() string {
	text := fmt.Sprintf("%s is %s", i.ID, i.Status)
	if i.Message != "" {
		text += ": " + i.Message
	}
	return text
}

// Add adds the objects of another summary, such as that of another cluster.
func (s *Summary) Add(other Summary) {
	counts := make(map[Status]int, len(s.Counts)+len(other.Counts))
	for _, one := range []Summary{*s, other} {
		for status, n := range one.Counts {
			counts[status] += n
		}
	}
	s.Total += other.Total
	s.Counts = counts
	s.Unhealthy = append(slices.Clone(s.Unhealthy), other.Unhealthy...)
	slices.SortStableFunc(s.Unhealthy, compareItems)
	s.Unhealthy = s.Unhealthy[:min(len(s.Unhealthy), MaxUnhealthy)]
}
