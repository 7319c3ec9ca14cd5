package application

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// No object that we write grows past 500 KB: what is left out is counted, kind by kind.
func TestSummarize_isBounded(t *testing.T) {
	s := &scope{app: &v1alpha1.Application{}}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		for i := range 5000 {
			s.app.Status.Components = append(s.app.Status.Components, v1alpha1.ComponentStatus{
				Kind: kind, Name: strings.Repeat("n", 100) + fmt.Sprint(i), Installed: true, Owned: true, Health: "Current",
			})
		}
	}
	s.app.Status.Components[9999].Health = "Failed"
	s.app.Status.Components[9999].Message = strings.Repeat("ü", 5000)
	s.summarize()
	written, err := json.Marshal(s.app)
	require.NoError(t, err)
	assert.Less(t, len(written), 500<<10)
	assert.Equal(t, "9999/10000", s.app.Status.ComponentsReady)
	last := s.app.Status.Components[len(s.app.Status.Components)-1]
	assert.Equal(t, "Secret", last.Kind)
	assert.Equal(t, "5000 more, of which 1 are not healthy: there are too many for one status", last.Message)
	require.Len(t, s.unhealthy, 1)
	assert.Less(t, len(s.unhealthy[0]), 500)
}

// A82: the same template has the same name, another one another; every name fits.
func TestHealthCheckName(t *testing.T) {
	app := &v1alpha1.Application{Spec: v1alpha1.ApplicationSpec{HealthCheck: &v1alpha1.ApplicationHealthCheck{}}}
	names := map[string]bool{}
	for _, name := range []string{"shop", strings.Repeat("a", 253), strings.Repeat("a", 252) + "b", strings.Repeat("a.", 100) + "z"} {
		for _, template := range []string{"{}", `{"spec":{}}`} {
			app.Name, app.Spec.HealthCheck.Template.Raw = name, []byte(template)
			got := healthCheckName(app)
			assert.Equal(t, got, healthCheckName(app))
			assert.LessOrEqual(t, len(got), 63)
			assert.Regexp(t, `^[a-z0-9]([-a-z0-9.]*[a-z0-9])?-health-[a-z0-9]+$`, got)
			names[got] = true
		}
	}
	assert.Len(t, names, 8)
}

// One component is one, and several are several.
func TestJudge_saysWhatIsBeingOwned(t *testing.T) {
	for unowned, message := range map[int]string{
		0: "there are no components",
		1: "1 component is waiting for an ownerReference",
		2: "2 components are waiting for an ownerReference",
	} {
		s := &scope{app: &v1alpha1.Application{}, unowned: unowned}
		outcome, err := s.judge()
		require.NoError(t, err)
		assert.Equal(t, message, outcome.Message)
	}
}

// A97: components that come and go change no condition while all are healthy, so that no event is
// sent for each of them.
func TestJudge_isTheSameForAnyNumber(t *testing.T) {
	judged := func(components int) (*v1alpha1.Application, reconcile.Outcome) {
		s := &scope{app: &v1alpha1.Application{}}
		for range components {
			s.app.Status.Components = append(s.app.Status.Components, v1alpha1.ComponentStatus{Kind: "ConfigMap", Installed: true, Health: "Current"})
		}
		s.summarize()
		outcome, err := s.judge()
		require.NoError(t, err)
		return s.app, outcome
	}
	message := func(app *v1alpha1.Application) string {
		return conditions.GetMessage(app, v1alpha1.ComponentsReadyCondition)
	}
	one, outcome := judged(1)
	three, another := judged(3)
	assert.Equal(t, outcome, another)
	assert.Equal(t, message(one), message(three))
	assert.Equal(t, "3/3", three.Status.ComponentsReady)
}
