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

func TestShorten(t *testing.T) {
	full := "main@sha1:47f912c13e7c33cc0a8e2fe52fd82243425d6670"
	assert.Equal(t, "applied main@sha1:47f912c: 2 objects", Shorten("applied "+full+": 2 objects"))
	assert.Equal(t, "sha256:47f912c", Shorten("sha256:47f912c13e7c33cc0a8e2fe52fd82243425d667047f912c13e7c33cc0a8e2fe5"))
	assert.Equal(t, "sha1:47f9", Shorten("sha1:47f9"))

	table := NewTable("Name", "Revision")
	AddRow(table, "a", full)
	var wide bytes.Buffer
	require.NoError(t, PrintTable(&wide, table, TableOptions{Wide: true}))
	assert.Contains(t, wide.String(), full)
}
