package health_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/health"
)

func TestNamespaceProblem_isWhatItsConditionsSay(t *testing.T) {
	const conditions = `status: {conditions: [
		{type: NamespaceDeletionDiscoveryFailure, status: "False", message: "All resources successfully discovered"},
		{type: NamespaceFinalizersRemaining, status: "True", message: "Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances"},
		{type: NamespaceContentRemaining, status: "True", message: "Some resources are remaining: pods. has 1 resource instances"}]}`
	going := parse(t, `{apiVersion: v1, kind: Namespace, metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}, `+conditions+`}`)
	assert.Equal(t, "Some resources are remaining: pods. has 1 resource instances; "+
		"Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances", health.NamespaceProblem(going))

	assert.Empty(t, health.NamespaceProblem(parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: a}, "+conditions+"}")), "it stays")
	long := parse(t, `{apiVersion: v1, kind: Namespace, metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"},
		status: {conditions: [{type: NamespaceContentRemaining, status: "True", message: "`+strings.Repeat("x", 5000)+`"}]}}`)
	assert.Len(t, health.NamespaceProblem(long), 200)
}
