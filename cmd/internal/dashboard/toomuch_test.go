package dashboard

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/cmd/internal/fleet"
	waybillcluster "waybill.dev/waybill/sync/cluster"
)

// What exceeds a limit is not asked again and again: the page says that it is not watched.
func TestOutcomeOf_tooMuch(t *testing.T) {
	err := fleet.NewHub("hub", nil).Explain(errors.Join(&waybillcluster.LimitError{What: "what it has sent", Most: "1 MiB"}))
	assert.Equal(t, absent, outcomeOf(err))
}
