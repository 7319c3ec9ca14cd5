package applicationinstallation

import (
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/reconcile"
)

// releaseDeployed is the status of a release that was installed completely.
const releaseDeployed = "deployed"

// noteRendering notes in the status which chart is about to be rendered, if one is: should that end the
// process, users see which chart it was, and another process begins with others.
func (d *driver) noteRendering(s *scope, got *prepared) error {
	before := s.session.rendering
	s.session.rendering, s.inst.Status.Rendering = nil, nil
	if s.method() != v1alpha1.MethodHelm {
		return nil
	}
	digest, err := desired(d.plan(s), got.files).Digest()
	if err != nil {
		return releaseError(release.Result{Decision: release.Decision{Action: release.ActionInstall}}, err)
	}
	known := s.session.deployed.known()
	if known != nil && known.Digest == digest && known.Status == releaseDeployed {
		return nil
	}
	metadata := got.files.chart.Metadata
	noted := &v1alpha1.RenderingStatus{Chart: metadata.Name + "-" + metadata.Version, Input: got.moved(), Attempts: 1}
	if before != nil && before.Input == noted.Input {
		noted.Attempts += before.Attempts
	}
	s.session.rendering, s.inst.Status.Rendering = noted, noted
	return nil
}

// awaitTurn has what was being rendered when that was interrupted wait for its turn, as what has failed does:
// if it was to blame, others go first. Something else is not to blame.
func (s *session) awaitTurn(backoff func(failures int) time.Duration) {
	r := s.rendering
	if r == nil || s.tried.phase() == phaseGivenUp {
		return
	}
	s.installed.moved = r.Input
	s.installed.digest, _, _ = strings.Cut(r.Input, "/")
	s.tried.failure = reconcile.Failed(v1alpha1.RenderingInterruptedReason,
		"rendering or installing chart %s was interrupted%s; others go first, and it is begun again after a back-off", r.Chart, times(r.Attempts))
	s.tried.Failures = max(s.tried.Failures, 1)
	s.tried.At = time.Now().Add(backoff(int(r.Attempts)))
}

func times(n int32) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" %d times in a row", n)
}
