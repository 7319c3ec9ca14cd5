package describe

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/events"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/cmd/internal/tree"
)

// description writes what is known of an object. What others wrote into it cannot steer a terminal.
type description struct {
	out     *bytes.Buffer
	object  *unstructured.Unstructured
	cluster string
}

// head writes the metadata.
func (d *description) head() {
	w := tabwriter.NewWriter(d.out, 0, 8, 2, ' ', 0)
	line := func(title, value string) { fmt.Fprintf(w, "%s\t%s\n", title, output.Escape(value)) }
	line("Name:", d.object.GetName())
	if namespace := d.object.GetNamespace(); namespace != "" {
		line("Namespace:", namespace)
	}
	line("Cluster:", d.cluster)
	line("Kind:", d.object.GetKind()+" ("+d.object.GetAPIVersion()+")")
	d.pairs(line, "Labels:", "=", d.object.GetLabels())
	annotations := maps.Clone(d.object.GetAnnotations())
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	d.pairs(line, "Annotations:", ": ", annotations)
	line("Created:", ago(d.object.GetCreationTimestamp()))
	if deleted := d.object.GetDeletionTimestamp(); deleted != nil {
		line("Deleted:", ago(*deleted)+", waits for the finalizers "+strings.Join(d.object.GetFinalizers(), ", "))
	}
	_ = w.Flush() // a buffer takes everything
}

// pairs writes a map, a line each.
func (d *description) pairs(line func(title, value string), title, between string, pairs map[string]string) {
	if len(pairs) == 0 {
		line(title, "<none>")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		line(title, key+between+pairs[key])
		title = ""
	}
}

// ago says when something was, and how long ago.
func ago(t metav1.Time) string {
	return t.UTC().Format(time.RFC3339) + " (" + duration.HumanDuration(time.Since(t.Time)) + " ago)"
}

// maxSpec is how many lines of a spec are shown: of a definition with many versions, or values of
// hundreds of lines, the beginning is enough to recognise it.
const maxSpec = 100

func (d *description) spec() {
	spec, found := mask.Secret(d.object).Object["spec"]
	if !found {
		return
	}
	content, err := yaml.Marshal(spec)
	if err != nil {
		content = []byte(err.Error())
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if more := len(lines) - maxSpec; more > 0 {
		lines = append(lines[:maxSpec], fmt.Sprintf("... %s: waybill get %s/%s -o yaml", output.Count(more, "more line"), strings.ToLower(d.object.GetKind()), d.object.GetName()))
	}
	d.section("Spec", strings.Join(lines, "\n"))
}

func (d *description) conditions() error {
	status := v1alpha1.ReconcileStatus{}
	raw, _, _ := unstructured.NestedMap(d.object.Object, "status") // absent before the first pass
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &status); err != nil {
		return fmt.Errorf("read status.conditions: %w", err)
	}
	table := output.NewTable("Type", "Status", "Reason", "Since", "Message")
	for _, c := range status.Conditions {
		since := duration.HumanDuration(time.Since(c.LastTransitionTime.Time))
		output.AddRow(table, output.Escape(c.Type), output.Escape(string(c.Status)), output.Escape(c.Reason), since, output.Escape(c.Message))
	}
	return d.table("Conditions", table)
}

func (d *description) tree(grown *tree.Tree) error {
	var text bytes.Buffer
	if err := grown.Print(&text); err != nil {
		return err
	}
	d.section("Tree", text.String())
	return nil
}

func (d *description) events(found []events.Entry) error {
	return d.table("Events", events.Table(found, events.Columns{Wide: true}))
}

// table writes a table as a section.
func (d *description) table(title string, table *metav1.Table) error {
	if len(table.Rows) == 0 {
		fmt.Fprintf(d.out, "%s:  <none>\n", title)
		return nil
	}
	var text bytes.Buffer
	if err := output.PrintTable(&text, table, output.TableOptions{}); err != nil {
		return err
	}
	d.section(title, text.String())
	return nil
}

// section writes lines indented below a title.
func (d *description) section(title, text string) {
	fmt.Fprintf(d.out, "%s:\n", title)
	for line := range strings.Lines(text) {
		fmt.Fprintf(d.out, "  %s\n", output.Escape(strings.TrimSuffix(line, "\n")))
	}
}
