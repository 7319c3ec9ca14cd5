package output_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/cmd/internal/output"
)

// What follows a line break would be left out, and is often the cause.
func TestPrintTable_cellsAreOneLine(t *testing.T) {
	table := output.NewTable("Name", "Message")
	output.AddRow(table, "├─ Certificate/web", "order failed:\n\t* no such\thost\n")
	var b bytes.Buffer
	require.NoError(t, output.PrintTable(&b, table, output.TableOptions{Wide: true}))
	assert.Equal(t, "NAME                 MESSAGE\n├─ Certificate/web   order failed: no such host\n", b.String())
}
