package release

import (
	"context"
	"fmt"
)

// undo takes a failed action back: an install is uninstalled, an upgrade rolled back. It gets a time of its own, because that of
// the action may be what was too short. A caller that is gone undoes nothing: the next Ensure takes the release up as it is.
// The error stays that of the action.
func (e *Engine) undo(ctx context.Context, j job, action Action, failed Result, err error) (Result, error) {
	if ctx.Err() != nil {
		return failed, err
	}
	j.desired.Known = &failed.Release // vouches for what was just recorded
	done, do := "and was rolled back", func(_ context.Context, s *session) (Result, error) { return s.goBack(s.fallback()) }
	if action == ActionInstall {
		done, do = "and was uninstalled", func(ctx context.Context, s *session) (Result, error) { return s.takeAway(ctx) }
	}
	var undoErr error
	if j.observed, undoErr = e.Observe(ctx, j.target, j.desired.Identity); undoErr == nil {
		var undone Result
		if undone, undoErr = inSession(ctx, j, do); undoErr == nil {
			return undone, &Error{Reason: ReasonOf(err), Err: fmt.Errorf("%w; %s", err, done)}
		}
		if undone.Release.Name != "" {
			failed = undone
		}
	}
	return failed, &Error{Reason: ReasonOf(err), Err: fmt.Errorf("%w; and could not be undone: %w", err, undoErr)}
}
