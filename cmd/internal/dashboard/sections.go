package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/events"
)

// section is a table on the page of an object.
type section struct {
	Title   string
	Columns []string
	Rows    [][]field
}

// field is a cell of a table.
type field struct {
	Text, Link string
	Mark       *mark
}

func text(values ...string) []field {
	fields := make([]field, len(values))
	for i, v := range values {
		fields[i].Text = v
	}
	return fields
}

// sections returns what is to be said of an object of a kind, besides what every kind has. cluster is where
// it is; zero for the hub.
func sections(cluster types.NamespacedName, object *unstructured.Unstructured, offered offers) ([]section, error) {
	switch object.GetKind() {
	case v1alpha1.GitSyncKind:
		return typed(object, syncSections)
	case v1alpha1.KubernetesClusterKind:
		return typed(object, func(k *v1alpha1.KubernetesCluster) []section { return clusterSections(k, offered) })
	case v1alpha1.ApplicationDefinitionKind:
		return typed(object, definitionSections)
	case v1alpha1.ApplicationInstallationKind:
		return typed(object, func(i *v1alpha1.ApplicationInstallation) []section { return installationSections(cluster, i) })
	default:
		return nil, nil
	}
}

func typed[T any](object *unstructured.Unstructured, of func(*T) []section) ([]section, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return nil, fmt.Errorf("read %s: %w", object.GetName(), err)
	}
	return of(into), nil
}

func syncSections(g *v1alpha1.GitSync) []section {
	facts := section{Title: "Source", Columns: []string{"Field", "Value"}, Rows: [][]field{
		{{Text: "URL"}, {Text: g.Spec.URL, Link: webLink(g.Spec.URL)}},
		text("Path", g.Spec.Path),
		text("Applied revision", g.Status.Revision),
		text("Attempted revision", g.Status.AttemptedRevision),
	}}
	if link := commitLink(g.Spec.URL, g.Status.Revision); link != "" {
		facts.Rows[2][1].Link = link
	}
	pruned := "Objects that are removed from the repository are deleted. Events Pruned say which."
	if !g.GetPrune() {
		pruned = "Objects that are removed from the repository stay: spec.prune is false."
	}
	facts.Rows = append(facts.Rows, text("Removed files", pruned))
	if in := g.Status.Inventory; in != nil {
		facts.Rows = append(facts.Rows, text("Objects delivered", fmt.Sprint(in.Count)))
	}
	done := 0
	for _, c := range g.Status.Clusters {
		if c.Ready && c.Revision == g.Status.AttemptedRevision {
			done++
		}
	}
	clusters := section{
		Title: fmt.Sprintf("Clusters: %d of %d have %s", done, len(g.Status.Clusters), cmp.Or(g.Status.AttemptedRevision, "nothing yet")), Columns: []string{"Cluster", "State", "Revision", "Message"},
	}
	for _, c := range g.Status.Clusters {
		m, name, link := markFailing, c.Name, objectLink("", "", "kubernetesclusters", g.Namespace, c.Name)
		if c.Ready {
			m = markReady
		}
		if name == "" {
			name, link = "this cluster", ""
		}
		clusters.Rows = append(clusters.Rows, []field{{Text: name, Link: link}, {Mark: &m}, {Text: c.Revision}, {Text: c.Message}})
	}
	found := []section{facts, clusters, problemsIn(g)}
	if len(g.Status.Held) > 0 {
		held := section{Title: "Held by rollbacks", Columns: []string{"Object", "Cluster", "Rollback"}}
		for _, h := range g.Status.Held {
			held.Rows = append(held.Rows, text(h.Kind+" "+qualified(h.Namespace, h.Name), h.Cluster, h.Rollback))
		}
		found = append(found, held)
	}
	return found
}

// problemsIn returns the problems of a GitSync, each with a link to its line of the repository.
func problemsIn(g *v1alpha1.GitSync) section {
	s := problemSection(g.Status.Problems)
	for i, p := range g.Status.Problems {
		s.Rows[i][1].Link = fileLink(g.Spec.URL, g.Status.AttemptedRevision, p.File, p.Line)
	}
	if more := int(g.Status.ProblemCount) - len(g.Status.Problems); more > 0 {
		s.Rows = append(s.Rows, text(fmt.Sprintf("and %d more, which the status does not list", more), "", "", "", ""))
	}
	return s
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func problemSection(problems []v1alpha1.Problem) section {
	s := section{Title: "Problems", Columns: []string{"Object", "File", "Cluster", "Reason", "Message"}}
	for _, p := range problems {
		file := p.File
		if file != "" && p.Line > 0 {
			file = fmt.Sprintf("%s:%d", file, p.Line)
		}
		s.Rows = append(s.Rows, text(p.Kind+" "+qualified(p.Namespace, p.Name), file, p.Cluster, p.Reason, p.Message))
	}
	return s
}

func clusterSections(k *v1alpha1.KubernetesCluster, offered offers) []section {
	s := section{Title: fmt.Sprintf("Installations (%d)", k.Status.InstallationCount), Columns: []string{"Namespace", "Name", "Definition", "Version", "State"}}
	for _, i := range k.Status.Installations {
		m, version := markOf(i.Ready), i.Version
		if other := offered.other(i.Definition, i.Version); other != "" {
			version += " (default " + other + ")"
		}
		s.Rows = append(s.Rows, []field{
			{Text: i.Namespace},
			{Text: i.Name, Link: objectLink(k.Namespace, k.Name, "applicationinstallations", i.Namespace, i.Name)},
			{Text: i.Definition, Link: objectLink("", "", "applicationdefinitions", "", i.Definition)},
			{Text: version}, {Mark: &m},
		})
	}
	if !k.IsSeed() {
		return []section{s}
	}
	used := section{Title: fmt.Sprintf("Installed in its clusters (%d)", k.Status.InstallationCount), Columns: []string{"Definition", "Version", "Installations"}}
	for _, u := range k.Status.Usage {
		used.Rows = append(used.Rows, []field{
			{Text: u.Definition, Link: objectLink("", "", "applicationdefinitions", "", u.Definition)}, {Text: u.Version}, {Text: fmt.Sprint(u.Count)},
		})
	}
	return []section{used}
}

func definitionSections(d *v1alpha1.ApplicationDefinition) []section {
	used := map[string]v1alpha1.VersionUsage{}
	for _, u := range d.Status.UsedBy {
		used[u.Version] = u
	}
	versions := section{Title: "Versions", Columns: []string{"Version", "Source", "Installations", "Note"}}
	users := section{Title: "Used by", Columns: []string{"Version", "Installation"}}
	for _, v := range d.Spec.Versions {
		note := ""
		switch {
		case v.Version == d.Spec.DefaultVersion:
			note = "default"
		case v.Deprecated:
			note = "deprecated"
		}
		versions.Rows = append(versions.Rows, text(v.Version, sourceOf(v.Template), fmt.Sprint(used[v.Version].Count), note))
		for _, user := range used[v.Version].Installations {
			users.Rows = append(users.Rows, text(v.Version, user))
		}
		if more := int(used[v.Version].Count) - len(used[v.Version].Installations); more > 0 {
			users.Rows = append(users.Rows, text(v.Version, fmt.Sprintf("and %d more", more)))
		}
	}
	return []section{versions, users}
}

// sourceOf says in a line where a version comes from.
func sourceOf(t *v1alpha1.ApplicationTemplate) string {
	switch {
	case t == nil:
		return ""
	case t.Source.Helm != nil:
		return t.Source.Helm.URL + " " + t.Source.Helm.ChartName + " " + t.Source.Helm.ChartVersion
	case t.Source.Git != nil:
		return t.Source.Git.Remote + " " + t.Source.Git.Path
	default:
		return ""
	}
}

func installationSections(cluster types.NamespacedName, i *v1alpha1.ApplicationInstallation) []section {
	facts := section{Title: "Application", Columns: []string{"Field", "Value"}, Rows: [][]field{
		{{Text: "Definition"}, {Text: i.Spec.ApplicationRef.Name, Link: "/catalog/" + url.PathEscape(i.Spec.ApplicationRef.Name)}},
		text("Version wanted", i.Spec.ApplicationRef.Version),
	}}
	if a := i.Status.Application; a != nil {
		facts.Rows = append(facts.Rows, text("Version installed", a.Version), text("Target namespace", a.Namespace),
			text("Source revision", a.Revision), text("Acts as ServiceAccount", cmp.Or(a.ServiceAccountName, "none: with the rights of waybill-sync")),
			[]field{{Text: "Application"}, {Text: i.Name, Link: objectLink(cluster.Namespace, cluster.Name, "applications", a.Namespace, i.Name)}})
	}
	history := section{Title: "History", Columns: []string{"Revision", "Version", "Source revision", "Finished", "Outcome", "Message"}}
	for _, h := range i.Status.History {
		history.Rows = append(history.Rows, text(fmt.Sprint(h.Revision), h.Version, h.SourceRevision, ago(h.FinishedAt)+" ago", string(h.Outcome), h.Message))
	}
	return []section{facts, problemSection(i.Status.Problems), history}
}

func conditionsOf(object *unstructured.Unstructured) ([]metav1.Condition, error) {
	status := v1alpha1.ReconcileStatus{}
	raw, _, _ := unstructured.NestedMap(object.Object, "status") // absent before the first pass
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &status); err != nil {
		return nil, fmt.Errorf("read status.conditions: %w", err)
	}
	return status.Conditions, nil
}

func conditionSection(conditions []metav1.Condition) section {
	s := section{Title: "Conditions", Columns: []string{"Type", "Status", "Reason", "Since", "Message"}}
	for _, c := range conditions {
		s.Rows = append(s.Rows, text(c.Type, string(c.Status), c.Reason, ago(c.LastTransitionTime), c.Message))
	}
	return s
}

func eventSection(entries []events.Entry) section {
	s := section{Title: "Events", Columns: []string{"Last seen", "Type", "Reason", "Count", "Message"}}
	for _, e := range entries {
		s.Rows = append(s.Rows, text(ago(e.LastSeen), e.Type, e.Reason, fmt.Sprint(e.Count), e.Message))
	}
	return s
}

func ago(t metav1.Time) string { return duration.HumanDuration(time.Since(t.Time)) }
