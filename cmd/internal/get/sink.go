package get

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/output"
)

// sink prints changes of several clusters. It is safe for concurrent use.
type sink interface {
	// accept is the format in which the API server sends objects.
	accept() string
	// of returns what prints the changes of a cluster.
	of(*fleet.Cluster) show
}

func (o *options) newSink(kind kinds.Kind) (sink, error) {
	if !o.tables() {
		printer, err := o.format.ToPrinter()
		return &objectSink{printer: printer, o: o}, err
	}
	rows := output.NewTableWriter(o.env.Out, output.TableOptions{Wide: *o.format.OutputFormat == "wide", NoHeaders: o.noHeaders})
	return &tableSink{o: o, kind: kind, rows: rows}, nil
}

// objectSink prints objects one after the other.
type objectSink struct {
	o       *options
	printer printers.ResourcePrinter
}

func (s *objectSink) accept() string { return runtime.ContentTypeJSON }

func (s *objectSink) of(*fleet.Cluster) show {
	return func(_ watch.EventType, found []version) error {
		for _, v := range found {
			if err := s.printer.PrintObj(v.object, s.o.env.Out); err != nil {
				return err
			}
		}
		return nil
	}
}

// tableSink prints one table with the changes of all clusters.
type tableSink struct {
	o    *options
	kind kinds.Kind

	mu      sync.Mutex
	rows    *output.TableWriter
	columns []metav1.TableColumnDefinition // of the first table, to which the others are fitted
}

func (s *tableSink) accept() string { return asTable }

func (s *tableSink) of(cluster *fleet.Cluster) show {
	var last []metav1.TableColumnDefinition // a watch sends the columns once
	return func(event watch.EventType, found []version) error {
		all := &metav1.Table{}
		for _, v := range found {
			table := &metav1.Table{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(v.object.Object, table); err != nil {
				return fmt.Errorf("read table of %s: %w", s.kind.Resource, err)
			}
			if len(table.ColumnDefinitions) == 0 {
				table.ColumnDefinitions = last
			}
			last = slices.Clone(table.ColumnDefinitions)
			table = s.o.prepare(table, cluster, s.kind, false)
			if s.o.watchEvents {
				output.Prepend(table, "Event", func(*metav1.TableRow) string { return string(event) })
			}
			merge(all, table)
		}
		return s.print(all)
	}
}

func (s *tableSink) print(table *metav1.Table) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(table.Rows) == 0 {
		return nil
	}
	if s.columns == nil {
		s.columns = table.ColumnDefinitions
	}
	fitted := &metav1.Table{ColumnDefinitions: s.columns}
	merge(fitted, table)
	return s.rows.Print(fitted)
}

// version is an object, or its row of a table, in one version.
type version struct {
	uid     types.UID
	version string
	object  *unstructured.Unstructured
}

// split returns the objects of a list, the rows of a table, or the object itself. Rows are tables of one
// row each.
func split(list *unstructured.Unstructured) ([]version, error) {
	switch {
	case list.GetKind() == "Table" && list.GroupVersionKind().Group == metav1.GroupName:
		return rowsOf(list)
	case !list.IsList():
		return []version{{list.GetUID(), list.GetResourceVersion(), list}}, nil
	}
	var found []version
	err := list.EachListItem(func(item runtime.Object) error {
		object := item.(*unstructured.Unstructured)
		found = append(found, version{object.GetUID(), object.GetResourceVersion(), object})
		return nil
	})
	return found, err
}

func rowsOf(table *unstructured.Unstructured) ([]version, error) {
	rows, _, err := unstructured.NestedSlice(table.Object, "rows")
	if err != nil {
		return nil, err
	}
	found := make([]version, len(rows))
	for i, row := range rows {
		one := &unstructured.Unstructured{Object: map[string]any{}}
		for _, field := range []string{"apiVersion", "kind", "metadata", "columnDefinitions"} {
			if value, there := table.Object[field]; there {
				one.Object[field] = value
			}
		}
		one.Object["rows"] = []any{row}
		metadata, err := metadataIn(row)
		if err != nil {
			return nil, err
		}
		found[i] = version{metadata.UID, metadata.ResourceVersion, one}
	}
	return found, nil
}

// metadataIn returns the metadata of the object of a row.
func metadataIn(row any) (metav1.ObjectMeta, error) {
	content, _ := row.(map[string]any)
	raw, err := json.Marshal(content["object"])
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	object := metav1.PartialObjectMetadata{}
	err = json.Unmarshal(raw, &object)
	return object.ObjectMeta, err
}
