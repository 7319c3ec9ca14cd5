package bench

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/assert"
)

// figure is one line of the table.
type figure struct {
	name  string
	value float64
	unit  string
	// limit is the maximum value; NaN for a figure that is only informative.
	limit float64
}

func (f figure) ok() bool { return math.IsNaN(f.limit) || f.value <= f.limit }

// results collects the figures of a row.
type results struct {
	row     string
	b       *testing.B
	figures []figure
}

// atMost adds a figure that fails above limit. what is empty for the row's own figure.
func (s *results) atMost(what string, value float64, unit string, limit float64) {
	name := s.row
	if what != "" {
		name += "/" + what
	}
	s.figures = append(s.figures, figure{name, value, unit, limit})
	s.b.ReportMetric(value, strings.ReplaceAll(strings.TrimSpace(what+" "+unit), " ", "-"))
}

// inform adds a figure without a limit.
func (s *results) inform(what string, value float64, unit string) {
	s.atMost(what, value, unit, math.NaN())
}

// lines returns the figures; a row that was aborted has one that fails.
func (s *results) lines() []figure {
	if s.b.Failed() {
		return append(s.figures, figure{s.row, math.Inf(1), "not measured", 0})
	}
	return s.figures
}

// table holds the figures of all rows.
type table struct {
	mu    sync.Mutex
	lines []figure
}

func (t *table) add(lines ...figure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, lines...)
}

// print returns the table, empty if nothing was measured, and whether every limit is met.
func (t *table) print() (text string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 0 {
		return "", true
	}
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVALUE\tUNIT\tLIMIT\t")
	ok = true
	for _, f := range t.lines {
		limit, verdict := "-", ""
		if !math.IsNaN(f.limit) {
			limit, verdict = number(f.limit), "ok"
		}
		if !f.ok() {
			verdict, ok = "FAIL", false
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.name, number(f.value), f.unit, limit, verdict)
	}
	_ = w.Flush() // writes to a buffer do not fail
	return out.String(), ok
}

// number formats a value with about three significant digits.
func number(v float64) string {
	switch {
	case math.IsInf(v, 0):
		return "-"
	case v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

func TestTable_failsAboveTheLimit(t *testing.T) {
	var all table
	all.add(figure{"a", 1.5, "x floor", 2}, figure{"a/floor", 0.8, "s", math.NaN()})
	text, ok := all.print()
	assert.True(t, ok)
	assert.Equal(t, "NAME     VALUE  UNIT     LIMIT  \na        1.50   x floor  2      ok\na/floor  0.800  s        -      \n", text)

	all.add(figure{"b", 3, "requests", 0})
	text, ok = all.print()
	assert.False(t, ok)
	assert.Contains(t, text, "FAIL")
}

func TestTable_isEmptyWhereNothingRan(t *testing.T) {
	var none table
	text, ok := none.print()
	assert.Empty(t, text)
	assert.True(t, ok)
}
