package tree

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/cmd/internal/output"
)

// printTree writes the tree as a table.
func printTree(w io.Writer, root *treeNode) error {
	table := output.NewTable("Name", "Namespace", "Health", "Version", "Message")
	addRows(table, root, "", "")
	return output.PrintTable(w, table, output.TableOptions{})
}

// addRows adds a node behind branch, and its children behind trunk.
func addRows(table *metav1.Table, node *treeNode, branch, trunk string) {
	name := node.Kind
	if node.Name != "" {
		name += "/" + node.Name
	}
	output.AddRow(table, branch+name, node.Namespace, string(node.Health), node.Version, node.Message)
	for i, child := range node.Children {
		if i < len(node.Children)-1 {
			addRows(table, child, trunk+"├─ ", trunk+"│  ")
			continue
		}
		addRows(table, child, trunk+"└─ ", trunk+"   ")
	}
}
