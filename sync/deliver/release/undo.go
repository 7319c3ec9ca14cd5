package release

import (
	"context"
	"fmt"
	"slices"
)

// undo reverts a failed action: it uninstalls an install and rolls back an upgrade. It has its own
// timeout, because that of the action may have been too short. If the caller is gone, it undoes
// nothing: the next Ensure takes up the release as it is. The error stays that of the action.
func (e *Engine) undo(ctx context.Context, j job, action Action, failed Result, err error) (Result, error) {
	if ctx.Err() != nil {
		return failed, err
	}
	j.desired.Known = &failed.Release // vouches for what was just recorded
	j.desired.UntouchedAt = nil       // the revision that is undone has written some of the objects
	done, do := "and was rolled back", func(_ context.Context, s *session) (Result, error) { return s.goBack(s.fallback()) }
	if action == ActionInstall {
		done, do = "and was uninstalled", func(ctx context.Context, s *session) (Result, error) { return s.takeAway(ctx) }
	}
	var undoErr error
	if j.observed, undoErr = e.Observe(ctx, j.target, j.desired.Identity); undoErr == nil {
		var undone Result
		undone, undoErr = inSession(ctx, j, do)
		undone.Altered = slices.Compact(slices.Sorted(slices.Values(slices.Concat(failed.Altered, undone.Altered))))
		if undoErr == nil {
			return undone, &Error{Reason: ReasonOf(err), Err: fmt.Errorf("%w; %s", err, done)}
		}
		if undone.Release.Name != "" {
			failed = undone
		}
	}
	return failed, &Error{Reason: ReasonOf(err), Err: fmt.Errorf("%w; and could not be undone: %w", err, undoErr)}
}
