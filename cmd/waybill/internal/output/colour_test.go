package output

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestColour_onlyWordsOfColumnsThatSayHowThingsAre(t *testing.T) {
	text := "NAME                READY   STATUS\n" +
		"├─ GitSync/True     True    True\n" +
		"└─ GitSync/other    False\n"
	want := "NAME                READY   STATUS\n" +
		"├─ GitSync/True     " + green + "True" + reset + "    True\n" +
		"└─ GitSync/other    " + red + "False" + reset + "\n"
	assert.Equal(t, want, colour(text))
}

func TestPrintTable_withoutColourWhereNobodyLooks(t *testing.T) {
	table := NewTable("Name", "Ready")
	AddRow(table, "a", "True")
	AddRow(table, "escape \x1b[31m", "")
	var out bytes.Buffer
	require.NoError(t, PrintTable(&out, table, TableOptions{}))
	assert.Equal(t, "NAME            READY\na               True\nescape ^[[31m\n", out.String())
}
