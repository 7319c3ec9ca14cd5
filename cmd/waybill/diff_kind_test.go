package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An object of a kind that the cluster does not offer cannot be created, unless the kind is defined
// by what is applied with it.
func TestDiff_kindThatIsNotOffered(t *testing.T) {
	cluster := hub(t)
	file := filepath.Join(t.TempDir(), "db.yaml")
	manifest := "{apiVersion: databases.example.com/v1, kind: Database, metadata: {name: db, namespace: default}}\n"
	require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))

	got := waybill(t, cluster, "diff", "-f", file)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Regexp(t, `^# Database.databases.example.com default/db in \S+: refused: the cluster does not offer this kind, and nothing that would be applied defines it\n$`, got.out)
	assert.Contains(t, got.errOut, "0 created, 0 changed, 0 deleted, 1 refused")

	got = waybill(t, cluster, "diff", "-f", file, "-f", "testdata/databases.yaml")
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.errOut, "3 created, 0 changed, 0 deleted, 0 refused", got.out)
}
