package applicationinstallation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/manifest"
)

// However long webhooks refuse, a status stays far below what etcd takes.
func TestToStatus_isBounded(t *testing.T) {
	problems := make([]manifest.Problem, 200)
	for i := range problems {
		problems[i] = manifest.Problem{Message: strings.Repeat("no", 50<<10)}
	}
	list := toStatus(problems)
	require.Len(t, list, maxProblems)
	text, err := json.Marshal(list)
	require.NoError(t, err)
	assert.Less(t, len(text), 200<<10)
	assert.True(t, strings.HasPrefix(list[0].Message, "nono"))
}
