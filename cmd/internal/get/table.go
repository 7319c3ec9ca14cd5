package get

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/output"
)

func kindsOf(q query) []kinds.Kind {
	var distinct []kinds.Kind
	for _, ref := range q.refs {
		if !slices.Contains(distinct, ref.Kind) {
			distinct = append(distinct, ref.Kind)
		}
	}
	return distinct
}

// prepare adds the columns that only we know: the cluster, the namespace if there are several, and
// the kind if there are several.
func (o *options) prepare(table *metav1.Table, cluster *fleet.Cluster, kind kinds.Kind, withKind bool) *metav1.Table {
	if withKind {
		prefixNames(table, kind.Singular+"/")
	}
	if kind.Namespaced && (o.allNamespaces || o.allClusters) {
		output.Prepend(table, "Namespace", func(row *metav1.TableRow) string { return metadataOf(row).Namespace })
	}
	if o.allClusters {
		output.Prepend(table, "Cluster", func(*metav1.TableRow) string { return cluster.Name() })
	}
	return table
}

func metadataOf(row *metav1.TableRow) metav1.ObjectMeta {
	object := metav1.PartialObjectMetadata{}
	if err := json.UnmarshalCaseSensitivePreserveInts(row.Object.Raw, &object); err != nil {
		return metav1.ObjectMeta{} // the server left out what it was asked to include
	}
	return object.ObjectMeta
}

func prefixNames(table *metav1.Table, prefix string) {
	i := columnOf(table, "Name")
	if i < 0 {
		return
	}
	for _, row := range table.Rows {
		if name, ok := row.Cells[i].(string); ok {
			row.Cells[i] = prefix + name
		}
	}
}

func columnOf(table *metav1.Table, name string) int {
	return slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
}

// merge appends the rows of from, matching columns by name: another cluster may have another
// version of the CustomResourceDefinition.
func merge(table, from *metav1.Table) {
	if len(table.ColumnDefinitions) == 0 {
		table.ColumnDefinitions = from.ColumnDefinitions
	}
	for _, row := range from.Rows {
		cells := make([]any, len(table.ColumnDefinitions))
		for i, column := range table.ColumnDefinitions {
			if j := columnOf(from, column.Name); j >= 0 && j < len(row.Cells) {
				cells[i] = row.Cells[j]
			}
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
}
