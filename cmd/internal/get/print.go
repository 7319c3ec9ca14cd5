package get

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/output"
)

// printTables prints a table per kind, with the rows of all clusters.
func (o *options) printTables(ctx context.Context, clusters []*fleet.Cluster, q query) error {
	answers, err := ask(ctx, clusters, q, (*reader).table)
	if err != nil {
		return err
	}
	rows, distinct := 0, kindsOf(q)
	for _, kind := range distinct {
		table := o.tableOf(kind, answers, q, len(distinct) > 1)
		if len(table.Rows) == 0 {
			continue
		}
		if rows > 0 {
			fmt.Fprintln(o.env.Out)
		}
		rows += len(table.Rows)
		options := output.TableOptions{Wide: *o.format.OutputFormat == "wide", NoHeaders: o.noHeaders}
		if err := output.PrintTable(o.env.Out, table, options); err != nil {
			return err
		}
	}
	reportFailures(o, answers, q)
	if rows == 0 {
		o.reportEmpty(q)
	}
	return incomplete(answers, q)
}

// tableOf collects the rows of one kind from all answers.
func (o *options) tableOf(kind kinds.Kind, answers []answer[*metav1.Table], q query, withKind bool) *metav1.Table {
	table := &metav1.Table{}
	for _, a := range answers {
		for i, result := range a.results {
			if q.refs[i].Kind == kind && result != nil {
				merge(table, o.prepare(result, a.cluster, kind, withKind))
			}
		}
	}
	return table
}

func (o *options) reportEmpty(q query) {
	if q.namespace == "" {
		fmt.Fprintln(o.env.ErrOut, "No resources found")
		return
	}
	fmt.Fprintf(o.env.ErrOut, "No resources found in namespace %s: -A looks in all\n", q.namespace)
}

// reportFailures warns of what is missing, unless it is the error in the end.
func reportFailures[T any](o *options, answers []answer[T], q query) {
	for _, a := range answers {
		switch {
		case a.err != nil:
			o.env.Warnf("cluster %s is missing: %s", a.cluster.Name(), a.err)
		case len(a.refusals) > 0 && incomplete(answers, q) == nil:
			o.env.Warnf("kinds that you may not list in cluster %s are left out: %s", a.cluster.Name(), output.Enumerate(a.forbidden(), "kind"))
		}
	}
}

// incomplete returns why something is missing that was named: what no cluster has, or what may not
// be read if there is only one.
func incomplete[T any](answers []answer[T], q query) error {
	if len(answers) > 1 {
		return errors.Join(missingEverywhere(answers, q)...)
	}
	if q.every || len(answers[0].refusals) == 0 {
		return nil
	}
	return refused(answers[0].refusals, q)
}

// printObjects prints machine-readable output. One object that was asked for by name is printed as
// such, others as a List; those of several clusters are grouped by cluster.
func (o *options) printObjects(ctx context.Context, clusters []*fleet.Cluster, q query) error {
	printer, err := o.format.ToPrinter()
	if err != nil {
		return err
	}
	answers, err := ask(ctx, clusters, q, (*reader).objects)
	if err != nil {
		return err
	}
	reportFailures(o, answers, q)
	if err := o.printAnswers(printer, answers, q); err != nil {
		return err
	}
	return incomplete(answers, q)
}

func (o *options) printAnswers(printer printers.ResourcePrinter, answers []answer[[]unstructured.Unstructured], q query) error {
	switch {
	case o.allClusters && *o.format.OutputFormat == "name":
		return o.printNames(printer, answers)
	case o.allClusters:
		return printer.PrintObj(byCluster(answers, o.format.JSONYamlPrintFlags.ShowManagedFields), o.env.Out)
	}
	items := flatten(answers[0])
	if len(items) == 1 && len(q.refs) == 1 && q.refs[0].Name != "" {
		return printer.PrintObj(&items[0], o.env.Out)
	}
	return printer.PrintObj(listOf(items), o.env.Out)
}

// printNames prints the name of the cluster before that of the object.
func (o *options) printNames(printer printers.ResourcePrinter, answers []answer[[]unstructured.Unstructured]) error {
	for _, a := range answers {
		var names bytes.Buffer
		if err := printer.PrintObj(listOf(flatten(a)), &names); err != nil {
			return err
		}
		for line := range strings.Lines(names.String()) {
			fmt.Fprintf(o.env.Out, "%s %s", a.cluster.Name(), line)
		}
	}
	return nil
}

func flatten(a answer[[]unstructured.Unstructured]) []unstructured.Unstructured {
	var items []unstructured.Unstructured
	for _, result := range a.results {
		items = append(items, result...)
	}
	return items
}

func listOf(items []unstructured.Unstructured) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Items: items}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	return list
}

// byCluster nests the objects under their clusters. A cluster that is missing has an error instead,
// and one of which kinds are missing names these. managed says whether to show managed fields, which
// printers leave out of lists only.
func byCluster(answers []answer[[]unstructured.Unstructured], managed bool) *unstructured.Unstructured {
	clusters := make([]any, len(answers))
	for i, a := range answers {
		items := []any{}
		for _, item := range flatten(a) {
			if !managed {
				item.SetManagedFields(nil)
			}
			items = append(items, item.Object)
		}
		cluster := map[string]any{"name": a.cluster.Name(), "items": items}
		var forbidden []any
		for _, kind := range a.forbidden() {
			forbidden = append(forbidden, kind)
		}
		if a.cluster.Key.Namespace != "" {
			cluster["namespace"] = a.cluster.Key.Namespace
		}
		if a.err != nil {
			cluster["error"] = a.err.Error()
		} else if len(forbidden) > 0 {
			cluster["forbidden"] = forbidden
		}
		clusters[i] = cluster
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cli.waybill.dev/v1alpha1", "kind": "ClusterObjects", "clusters": clusters,
	}}
}
