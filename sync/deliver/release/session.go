package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"waybill.dev/waybill/sync/render/helm"
)

// session is what one action works with.
type session struct {
	job
	id Identity // of the desired release

	ctx    context.Context // of the action, to find out why something failed
	client *client
	store  *store
	log    logr.Logger
	// warnings of the chart itself.
	warnings []string
	// capabilities are those of the cluster, set by configuration.
	capabilities *chartutil.Capabilities
	// rendered is what the chart was rendered to; flat is what Helm gets instead of the chart.
	rendered *helm.Rendered
	flat     *chart.Chart
	// sorted is the manifest of what was rendered.
	sorted *sorted
	close  context.CancelFunc
}

// newSession prepares an action. The caller must close it.
func newSession(ctx context.Context, j job) (*session, error) {
	s := &session{job: j, id: j.desired.Identity, ctx: ctx}
	s.log = logr.FromContextOrDiscard(ctx).WithValues("release", s.id.String())
	var err error
	if s.client, err = newClient(ctx, s.target, s.id); err != nil {
		return nil, err
	}
	s.client.doing, s.client.untouchedAt, s.client.memo = s.desired.Doing, s.desired.UntouchedAt, s.engine.memo
	// How an action ended is recorded even when its time is up.
	settled, cancel := settling(ctx)
	if s.store, err = newStore(ctx, settled, s.target.Config(), s.id, s.observed); err != nil {
		cancel()
		return nil, err
	}
	s.store.makeRoom = func(next *helmrelease.Release) {
		s.putOriginals(next)
		s.makeRoom(next)
	}
	s.close = cancel
	return s, nil
}

// configuration returns what Helm's actions need: no client of Helm's own, no discovery, and no
// history beyond what was observed.
func (s *session) configuration() (*action.Configuration, error) {
	capabilities, err := s.engine.capabilities(s.target)
	if err != nil {
		return nil, &Error{Reason: ReasonUnavailable, Err: err}
	}
	s.capabilities = capabilities
	// Helm needs a client getter to look up objects only, which what the chart was rendered to does not.
	return &action.Configuration{
		Releases:     s.store.storage(),
		KubeClient:   s.client,
		Capabilities: capabilities,
		Log:          func(format string, args ...any) { s.log.V(2).Info(fmt.Sprintf(format, args...)) },
	}, nil
}

// failed turns what an action returned into an Error. It prefers what the client and the store saw:
// Helm repeats that, cuts it short or, if a success could not be recorded, only logs it.
func (s *session) failed(what string, err error) error {
	seen := cmp.Or(s.client.failure(), s.store.failure())
	var known *Error
	switch {
	case err == nil && s.store.failure() == nil:
		return nil
	case errors.As(err, &known):
		return err
	case err != nil && (seen == nil || strings.Contains(err.Error(), importConflict)):
		seen = err
	}
	reason := classify(s.ctx, seen, s.client.isRendered())
	if reason == ReasonInterrupted && s.ctx.Err() != nil {
		seen = fmt.Errorf("%w (%w)", context.Cause(s.ctx), seen)
	}
	return &Error{Reason: reason, Err: fmt.Errorf("%s %s: %w", what, s.id, seen)}
}

// result describes a release and its objects, except those of an altered release and of one that was
// never recorded: Helm returns an install also if it did not get that far.
func (s *session) result(r *helmrelease.Release) (Result, error) {
	result := Result{
		Kept: s.client.kept, Written: s.client.written, Untouched: s.client.untouched, Warnings: slices.Concat(s.warnings, s.client.warnings),
		Altered: s.store.allAltered(), Ignored: s.observed.Ignored,
	}
	if r == nil || s.store.isAltered(r.Version) || !s.store.holds(r) {
		return result, nil
	}
	result.Release = s.store.status(r)
	var err error
	if result.Objects, err = s.client.objectsOf(r.Manifest); err != nil {
		return result, s.failed("read manifest of", err)
	}
	return result, nil
}

// build returns the objects of a recorded release.
func (s *session) build(r *helmrelease.Release) (kube.ResourceList, error) {
	return s.client.Build(strings.NewReader(r.Manifest), false)
}
