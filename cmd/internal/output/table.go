package output

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"waybill.dev/waybill/sync/excerpt"
)

// TableOptions set how a table is printed.
type TableOptions struct {
	// Wide also shows columns of lower priority, and commits in full.
	Wide bool
	// NoHeaders leaves out the line with the column names.
	NoHeaders bool
}

// PrintTable prints a table with aligned columns, and each cell on one line. If w is a terminal and NO_COLOR is not set, words
// in columns that show a state are coloured.
func PrintTable(w io.Writer, table *metav1.Table, o TableOptions) error {
	fold(table, o.Wide)
	var buffer bytes.Buffer
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: o.Wide, NoHeaders: o.NoHeaders})
	if err := printer.PrintObj(table, &buffer); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	text := trimLines(buffer.String())
	if !o.NoHeaders && printers.AllowsColorOutput(w) {
		text = colour(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// NewTable returns a table with columns of these names and no rows.
func NewTable(columns ...string) *metav1.Table {
	table := &metav1.Table{}
	for _, name := range columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	return table
}

// AddRow adds a row of cells, one per column.
func AddRow(table *metav1.Table, cells ...any) {
	table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
}

// Prepend puts a column before the others; value returns the content of its cells.
func Prepend(table *metav1.Table, name string, value func(*metav1.TableRow) string) {
	column := metav1.TableColumnDefinition{Name: name, Type: "string"}
	table.ColumnDefinitions = slices.Insert(table.ColumnDefinitions, 0, column)
	for i := range table.Rows {
		row := &table.Rows[i]
		row.Cells = slices.Insert(row.Cells, 0, any(value(row)))
	}
}

// commit matches a git commit in a revision.
var commit = regexp.MustCompile(`\b(sha1:[0-9a-f]{7}|sha256:[0-9a-f]{7})[0-9a-f]{33,57}\b`)

// Shorten cuts the commits in a text to the part that people compare.
func Shorten(text string) string { return commit.ReplaceAllString(text, "$1") }

// fold makes one line of each cell, as the printer leaves out what follows a line break, and shortens
// commits unless the table is wide.
func fold(table *metav1.Table, wide bool) {
	changeCells(table, excerpt.Line)
	if !wide {
		changeCells(table, Shorten)
	}
}

func changeCells(table *metav1.Table, change func(string) string) {
	for _, row := range table.Rows {
		for i, cell := range row.Cells {
			if text, ok := cell.(string); ok {
				row.Cells[i] = change(text)
			}
		}
	}
}

// trimLines removes trailing blanks, which alignment leaves.
func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	return b.String()
}

// Count returns a number with its noun: 1 object, 2 objects.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// maxEnumerated is how many names Enumerate writes out.
const maxEnumerated = 12

// Enumerate returns names in order; of many, the first ones and the number of the others, with a noun
// for them.
func Enumerate(names []string, noun string) string {
	sorted := slices.Sorted(slices.Values(names))
	if more := len(sorted) - maxEnumerated; more > 0 {
		return fmt.Sprintf("%s and %s", strings.Join(sorted[:maxEnumerated], ", "), Count(more, "other "+noun))
	}
	return strings.Join(sorted, ", ")
}
