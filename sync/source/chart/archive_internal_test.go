package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What Helm takes for a subchart is unpacked within the limits; anything else is a file like others.
func TestIsNestedArchive(t *testing.T) {
	for name, want := range map[string]bool{
		"charts/db-1.0.0.tgz":   true,
		"charts/.db-1.0.0.tgz":  false, // Helm ignores it
		"charts/_db-1.0.0.tgz":  false, // Helm ignores it
		"charts/db.tar":         false,
		"charts/db/values.yaml": false,
		"charts/db/db.tgz":      false, // belongs to a chart that is not packed
		"files/db-1.0.0.tgz":    false,
		"db-1.0.0.tgz":          false,
	} {
		assert.Equal(t, want, isNestedArchive(name), name)
	}
}
