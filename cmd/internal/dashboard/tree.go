package dashboard

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/dashboard/graph"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/tree"
	"waybill.dev/waybill/sync/deliver/apply"
)

// maxDrawn is how many objects a graph is drawn of; maxBranches is how many rows the table has.
const (
	maxDrawn    = 150
	maxBranches = 2000
	// maxRead is how many user clusters are read for a tree.
	maxRead = 50
)

// branch is a row of a tree.
type branch struct {
	tree.Row
	Mark mark
	Link string
	// Position among those of the same parent, and how many these are, from 1.
	Position, Siblings int
	// Parent says that rows below belong to it.
	Parent bool
}

// tree shows what became of an object, from the commit to the Pods. It is a page of its own, because reading that may
// take a while.
func (s *server) tree(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *subject) {
	grown, err := tree.GrowIn(ctx, sub.cluster, sub.object, s.near(ctx, sub))
	if err != nil {
		s.explain(w, r, sub.cluster, sub.at, false, err)
		return
	}
	for _, warning := range grown.Warnings {
		sub.notes.warnf("%s", warning)
	}
	rows := s.origin(ctx, sub)
	above := len(rows)
	for _, row := range grown.Rows() {
		row.Level += above
		rows = append(rows, branch{Row: row, Mark: healthMark(string(row.Health)), Link: s.linkOf(ctx, sub.viewer, row)})
	}
	more := max(0, len(rows)-maxBranches)
	rows = rows[:len(rows)-more]
	place(rows)
	model := map[string]any{"Rows": rows, "More": more, "Name": sub.object.GetName(), "Head": headOf(sub, "tree")}
	if len(rows) <= maxDrawn {
		model["Graph"] = drawing(rows)
	}
	s.trees.shown(treePage{sub.viewer, sub.at.String()}, func() *tree.Sketch { return grown.Sketch(maxBranches) })
	s.show(w, r, "tree", http.StatusOK, page{
		Title: "Tree of " + sub.object.GetName(), Area: areas[sub.object.GetKind()], Object: sub.at.String() + "/tree", Troubles: sub.notes.all(), Model: model,
	})
}

// near returns which user clusters are read for the tree of an object that may lead to all of them: of many, those that the
// object has to do with, as far as the hub knows, and so many of these at most. Others would cost a request for each kubeconfig,
// and who runs a seed says how many clusters that has.
func (s *server) near(ctx context.Context, sub *subject) fleet.Selection {
	if sub.at.cluster.Name != "" {
		return fleet.Selection{Keep: firstOf(sub), Behind: maxRead}
	}
	all := visible[*v1alpha1.KubernetesCluster](ctx, sub.viewer, s.inventory.clusters)
	if len(all) <= maxRead {
		return fleet.Selection{Behind: maxRead}
	}
	concerned := func(k *v1alpha1.KubernetesCluster) bool { return uses(k, sub.object.GetName()) }
	if sub.object.GetKind() == v1alpha1.GitSyncKind {
		to := targetsOf(sub)
		concerned = func(k *v1alpha1.KubernetesCluster) bool {
			return k.Namespace == sub.object.GetNamespace() && to[k.Name]
		}
	}
	read, more := map[types.NamespacedName]bool{}, 0
	for _, k := range all {
		switch {
		case !concerned(k):
		case len(read) < maxRead:
			read[client.ObjectKeyFromObject(k)] = true
		default:
			more++
		}
	}
	if more > 0 {
		sub.notes.warnf("What is in %d more clusters is not read: a tree leads to %d at most. The pages of clusters have theirs.", more, maxRead)
	}
	return fleet.Selection{
		Keep: func(k *v1alpha1.KubernetesCluster) bool { return read[client.ObjectKeyFromObject(k)] }, Behind: maxRead,
	}
}

// firstOf accepts the first clusters of a seed, of which the hub knows nothing.
func firstOf(sub *subject) func(*v1alpha1.KubernetesCluster) bool {
	count := 0
	return func(*v1alpha1.KubernetesCluster) bool {
		if count++; count == maxRead+1 {
			sub.notes.warnf("What is in more clusters of %s is not read: a tree leads to %d at most.", sub.cluster.Name(), maxRead)
		}
		return count <= maxRead
	}
}

// uses reports whether a cluster has installations of a definition, or whether the hub does not know.
func uses(k *v1alpha1.KubernetesCluster, definition string) bool {
	return int(k.Status.InstallationCount) > len(k.Status.Installations) ||
		slices.ContainsFunc(k.Status.Installations, func(i v1alpha1.InstallationSummary) bool { return i.Definition == definition }) ||
		slices.ContainsFunc(k.Status.Usage, func(u v1alpha1.DefinitionUsage) bool { return u.Definition == definition })
}

// targetsOf returns the clusters that a GitSync delivers to.
func targetsOf(sub *subject) map[string]bool {
	to := map[string]bool{}
	clusters, _, _ := unstructured.NestedSlice(sub.object.Object, "status", "clusters") // what it has not is delivered nowhere
	for _, one := range clusters {
		if status, ok := one.(map[string]any); ok {
			name, _ := status["name"].(string)
			to[name] = true
		}
	}
	return to
}

// origin returns what an object comes from: a commit, and the GitSync that delivers it, as far as the viewer may see that.
func (s *server) origin(ctx context.Context, sub *subject) []branch {
	commit := func(sync *v1alpha1.GitSync, revision string) branch {
		return branch{
			Row: tree.Row{Level: 1, Kind: "Commit", Name: revision, Health: "Current", Message: "of " + sync.Spec.URL}, Mark: markReady, Link: commitLink(sync.Spec.URL, revision),
		}
	}
	own := &v1alpha1.GitSync{}
	c, err := sub.viewer.hub.Client()
	if err != nil {
		return nil
	}
	if sub.object.GetKind() == v1alpha1.GitSyncKind {
		if c.Get(ctx, client.ObjectKeyFromObject(sub.object), own) != nil || own.Status.AttemptedRevision == "" || sub.at.cluster.Name != "" {
			return nil
		}
		return []branch{commit(own, own.Status.AttemptedRevision)}
	}
	owner, owned := apply.OwnerOf(sub.object)
	if !owned || owner.Kind != v1alpha1.GitSyncKind || c.Get(ctx, owner.ObjectKey(), own) != nil {
		return nil
	}
	state, message := verdict(own.Status.Conditions, own.Spec.Suspend)
	row := branch{Mark: state, Link: objectLink("", "", "gitsyncs", own.Namespace, own.Name), Row: tree.Row{
		Level: 2, Group: v1alpha1.Group, Kind: v1alpha1.GitSyncKind, Namespace: own.Namespace, Name: own.Name, Message: message, Version: own.Status.Revision,
	}}
	if own.Status.AttemptedRevision == "" {
		row.Level = 1
		return []branch{row}
	}
	return []branch{commit(own, own.Status.AttemptedRevision), row}
}

// place says of each row where it is among those of the same parent.
func place(rows []branch) {
	open := map[int][]int{} // by level, the rows of the parent at hand
	end := func(level int) {
		for at, siblings := range open {
			if at <= level {
				continue
			}
			for i, row := range siblings {
				rows[row].Position, rows[row].Siblings = i+1, len(siblings)
			}
			delete(open, at)
		}
	}
	for i := range rows {
		end(rows[i].Level)
		open[rows[i].Level] = append(open[rows[i].Level], i)
		rows[i].Parent = i+1 < len(rows) && rows[i+1].Level > rows[i].Level
	}
	end(0)
}

// drawnNode is an object of a graph.
type drawnNode struct {
	graph.Box
	Kind, Name, Link string
	Mark             mark
	Title            string
}

// drawn is a graph as a page shows it.
type drawn struct {
	graph.Size
	Nodes []drawnNode
	Edges []graph.Edge
}

func drawing(rows []branch) drawn {
	levels := make([]int, len(rows))
	for i, row := range rows {
		levels[i] = row.Level
	}
	layout := graph.Layered(levels)
	d := drawn{Size: layout.Size, Edges: layout.Edges}
	for i, row := range rows {
		title := row.Kind + " " + row.Name
		if row.Namespace != "" {
			title += " in namespace " + row.Namespace
		}
		d.Nodes = append(d.Nodes, drawnNode{
			Box: layout.Boxes[i], Kind: row.Kind, Name: shorten(row.Name, 26), Link: row.Link, Mark: row.Mark, Title: title + ": " + row.Mark.Words,
		})
	}
	return d
}

// shorten leaves out the middle of a text that is too long to be drawn: names differ at their ends.
func shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	half := (most - 1) / 2
	return string(runes[:half]) + "…" + string(runes[len(runes)-half:])
}

// linkOf returns the address of an object of a tree; empty if it has no page.
func (s *server) linkOf(ctx context.Context, v *viewer, row tree.Row) string {
	key := row.ClusterKey
	if k := s.inventory.kubernetesCluster(ctx, v, key); k != nil && k.Spec.KubeconfigSecretRef == nil {
		key = types.NamespacedName{} // it is the hub itself
	}
	switch {
	case row.Name == "", row.Seed != types.NamespacedName{}: // pages are about the hub's own clusters, of which one may have the same key
		return ""
	case row.Group == "" && row.Kind == "Pod":
		return logsLink(key, row.Namespace, row.Name)
	case row.Group != v1alpha1.Group:
		return ""
	}
	resource := strings.ToLower(row.Kind) + "s"
	if strings.HasSuffix(resource, "classs") {
		resource = strings.TrimSuffix(resource, "s") + "es"
	}
	return objectLink(key.Namespace, key.Name, resource, row.Namespace, row.Name)
}

func healthMark(status string) mark {
	switch {
	case status == "Current":
		return markReady
	case slices.Contains([]string{"Failed", "NotFound"}, status):
		return markFailing
	default:
		return markUnknown
	}
}
