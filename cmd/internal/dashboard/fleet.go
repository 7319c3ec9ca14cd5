package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"waybill.dev/waybill/api/v1alpha1"
)

const (
	// clustersPerPage and maxColumns bound the grid.
	clustersPerPage = 100
	maxColumns      = 40
)

// mark is a state with its letter and words, so that no state is told by colour alone.
type mark struct{ Class, Letter, Words string }

var (
	markReady   = mark{"ready", "✓", "Ready"}
	markFailing = mark{"failing", "✗", "Not ready"}
	markUnknown = mark{"unknown", "…", "In progress or unknown"}
	markPaused  = mark{"paused", "‖", "Paused"}
)

func markOf(status metav1.ConditionStatus) mark {
	switch status {
	case metav1.ConditionTrue:
		return markReady
	case metav1.ConditionFalse:
		return markFailing
	default:
		return markUnknown
	}
}

// grid is the page of the fleet: a row for each cluster, a column for each application.
type grid struct {
	Selector, Text string
	State          string // of what is shown: stateFailing, stateBehind, or any
	Columns        []column
	MoreColumns    int
	Rows           []row
	Total          int
	Previous, Next string // addresses; empty if there is no such page
	First, Last    int
	Problems       int // clusters on all pages that are not Ready
}

type column struct {
	Definition, Link string
	Uses             int
	// Newest of the versions in use anywhere that the definition offers, where the viewer may see that.
	Newest string
}

type row struct {
	Namespace, Name, Link, Version string
	Labels                         []string
	Mark                           mark
	Message                        string
	Cells                          []cell
	Installations                  int32
}

// cell is what one cluster has of one application.
type cell struct {
	Mark    mark
	Version string
	Link    string
	// More is how many other installations there are; the worst is shown.
	More int
	// Behind says that a newer version is in use elsewhere.
	Behind bool
	// Default is the default version of the definition, if this is another one.
	Default string
}

func (s *server) fleet(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	p := page{Title: "Fleet", Area: "fleet", Kinds: []string{v1alpha1.KubernetesClusterKind}}
	selector, err := labels.Parse(query.Get("selector"))
	if err != nil {
		p.Troubles = append(p.Troubles, "The label selector is not valid: "+err.Error())
		selector = labels.Everything()
	}
	wanted := visible[*v1alpha1.KubernetesCluster](r.Context(), viewerOf(r), s.inventory.clusters)
	text := strings.TrimSpace(query.Get("text"))
	offered := s.offers(r.Context(), viewerOf(r))
	if query.Get("state") == stateBehind {
		p.Kinds = append(p.Kinds, v1alpha1.ApplicationDefinitionKind) // which say what the page has
	}
	wanted = slices.DeleteFunc(wanted, func(k *v1alpha1.KubernetesCluster) bool {
		return !selector.Matches(labels.Set(k.Labels)) || !concerns(k, text) || query.Get("state") == stateFailing && !ails(k) ||
			query.Get("state") == stateBehind && !offered.behind(k)
	})
	number, _ := strconv.Atoi(query.Get("page")) // the first, unless it is a number
	p.Model = newGrid(wanted, query, number, offered)
	s.show(w, r, "fleet", http.StatusOK, p)
}

// ails reports whether a cluster, or something that is installed in it, is not ready.
func ails(k *v1alpha1.KubernetesCluster) bool {
	return clusterMark(k) == markFailing || slices.ContainsFunc(k.Status.Installations, func(i v1alpha1.InstallationSummary) bool {
		return i.Ready == metav1.ConditionFalse
	})
}

// concerns reports whether a cluster, or something that is installed in it, has a text in its name.
func concerns(k *v1alpha1.KubernetesCluster, text string) bool {
	return text == "" || strings.Contains(k.Name, text) || strings.Contains(k.Namespace, text) ||
		slices.ContainsFunc(k.Status.Installations, func(i v1alpha1.InstallationSummary) bool { return strings.Contains(i.Definition, text) })
}

func newGrid(clusters []*v1alpha1.KubernetesCluster, query url.Values, number int, offered offers) grid {
	pages := max(1, (len(clusters)+clustersPerPage-1)/clustersPerPage)
	number = min(max(number, 1), pages)
	first := (number - 1) * clustersPerPage
	shown := clusters[first:min(first+clustersPerPage, len(clusters))]
	g := grid{
		Selector: query.Get("selector"), Text: query.Get("text"), State: query.Get("state"), Total: len(clusters),
		First: min(first+1, len(clusters)), Last: first + len(shown),
	}
	if number > 1 {
		g.Previous = pageLink(query, number-1)
	}
	if number < pages {
		g.Next = pageLink(query, number+1)
	}
	for _, k := range clusters {
		if clusterMark(k) == markFailing {
			g.Problems++
		}
	}
	order := versions{}
	g.Columns = columns(clusters, order, offered)
	if g.MoreColumns = len(g.Columns) - maxColumns; g.MoreColumns > 0 {
		g.Columns = g.Columns[:maxColumns]
	} else {
		g.MoreColumns = 0
	}
	for _, k := range shown {
		g.Rows = append(g.Rows, newRow(k, g.Columns, order, offered))
	}
	return g
}

func pageLink(query url.Values, number int) string {
	q := maps.Clone(query)
	q.Set("page", strconv.Itoa(number))
	return "/?" + q.Encode()
}

// columns returns the applications that are installed in clusters, those in most of them first.
func columns(clusters []*v1alpha1.KubernetesCluster, order versions, offered offers) []column {
	found := map[string]*column{}
	for _, k := range clusters {
		for _, i := range k.Status.Installations {
			c := found[i.Definition]
			if c == nil {
				c = &column{Definition: i.Definition, Link: objectLink("", "", "applicationdefinitions", "", i.Definition)}
				found[i.Definition] = c
			}
			c.Uses++
			if order.newer(i.Version, c.Newest) && offered.has(i.Definition, i.Version) {
				c.Newest = i.Version
			}
		}
	}
	all := make([]column, 0, len(found))
	for _, c := range found {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b column) int {
		return cmp.Or(cmp.Compare(b.Uses, a.Uses), cmp.Compare(a.Definition, b.Definition))
	})
	return all
}

// versions compares versions, and parses each once: a fleet has few of them, many times.
type versions map[string]*semver.Version

// newer reports whether version a is newer than b; any is newer than none.
func (v versions) newer(a, b string) bool {
	if a == b || b == "" || a == "" {
		return b == "" && a != ""
	}
	va, vb := v.parse(a), v.parse(b)
	return va != nil && vb != nil && va.GreaterThan(vb)
}

// parse returns nil for what is no version.
func (v versions) parse(text string) *semver.Version {
	parsed, known := v[text]
	if !known {
		parsed, _ = semver.NewVersion(text)
		v[text] = parsed
	}
	return parsed
}

func clusterMark(k *v1alpha1.KubernetesCluster) mark {
	if k.Spec.Paused {
		return markPaused
	}
	ready := meta.FindStatusCondition(k.Status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil {
		return markUnknown
	}
	return markOf(ready.Status)
}

func newRow(k *v1alpha1.KubernetesCluster, columns []column, order versions, offered offers) row {
	r := row{
		Namespace: k.Namespace, Name: k.Name, Version: k.Status.Version, Mark: clusterMark(k), Installations: k.Status.InstallationCount,
		Link: objectLink("", "", "kubernetesclusters", k.Namespace, k.Name),
	}
	for _, key := range slices.Sorted(maps.Keys(k.Labels)) {
		r.Labels = append(r.Labels, key+"="+k.Labels[key])
	}
	if ready := meta.FindStatusCondition(k.Status.Conditions, v1alpha1.ReadyCondition); ready != nil && ready.Status != metav1.ConditionTrue {
		r.Message = ready.Message
	}
	by := map[string][]v1alpha1.InstallationSummary{}
	for _, i := range k.Status.Installations {
		by[i.Definition] = append(by[i.Definition], i)
	}
	for _, c := range columns {
		r.Cells = append(r.Cells, newCell(k, c, by[c.Definition], order, offered))
	}
	return r
}

func newCell(k *v1alpha1.KubernetesCluster, c column, installed []v1alpha1.InstallationSummary, order versions, offered offers) cell {
	if len(installed) == 0 {
		return cell{}
	}
	worst := slices.MinFunc(installed, func(a, b v1alpha1.InstallationSummary) int {
		return cmp.Compare(severity(a.Ready), severity(b.Ready))
	})
	return cell{
		Mark: markOf(worst.Ready), Version: worst.Version, More: len(installed) - 1, Behind: order.newer(c.Newest, worst.Version), Default: offered.other(c.Definition, worst.Version),
		Link: objectLink(k.Namespace, k.Name, "applicationinstallations", worst.Namespace, worst.Name),
	}
}

// severity orders states, the worst first.
func severity(status metav1.ConditionStatus) int {
	return slices.Index([]mark{markFailing, markUnknown, markReady}, markOf(status))
}

// Title says what a cell shows, in words.
func (c cell) Title() string {
	words := fmt.Sprintf("%s: %s", c.Version, c.Mark.Words)
	if c.Behind {
		words += "; a newer version is in use elsewhere"
	}
	if c.Default != "" {
		words += "; the default version is " + c.Default
	}
	return words
}

// objectLink returns the address of an object; the cluster is empty for the hub.
func objectLink(clusterNamespace, cluster, resource, namespace, name string) string {
	parts := []string{clusterNamespace, cluster, resource, namespace, name}
	for i, part := range parts {
		parts[i] = url.PathEscape(cmp.Or(part, "-"))
	}
	return "/objects/" + strings.Join(parts, "/")
}
