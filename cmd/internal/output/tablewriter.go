package output

import (
	"bytes"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// TableWriter prints tables of the same columns below each other as they come, as `kubectl get --watch`
// does: the column names once, and columns never narrower than before. It is not safe for concurrent
// use.
type TableWriter struct {
	w       io.Writer
	wide    bool
	printer printers.ResourcePrinter
	tabs    interface {
		io.Writer
		Flush() error
	}
	buffer bytes.Buffer
}

// NewTableWriter returns a writer that has printed nothing.
func NewTableWriter(w io.Writer, o TableOptions) *TableWriter {
	t := &TableWriter{w: w, wide: o.Wide, printer: printers.NewTablePrinter(printers.PrintOptions{Wide: o.Wide, NoHeaders: o.NoHeaders})}
	t.tabs = printers.GetNewTabWriter(&t.buffer)
	return t
}

// Print writes the rows of a table, and before the first row of all the names of the columns.
func (t *TableWriter) Print(table *metav1.Table) error {
	fold(table, t.wide)
	t.buffer.Reset()
	if err := t.printer.PrintObj(table, t.tabs); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	if err := t.tabs.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	_, err := io.WriteString(t.w, trimLines(t.buffer.String()))
	return err
}
