package reconcile

import "time"

// Limits of a drift conflict.
const (
	// freeCorrections is how many corrections follow one another without a pause.
	freeCorrections = 3
	// maxCorrectionPause is the longest pause before a correction.
	maxCorrectionPause = time.Minute
	// conflictOver is how long nothing must be corrected before corrections are counted from zero again.
	conflictOver = 2 * time.Minute
)

// DriftConflict counts how often something was corrected that another field manager keeps changing or
// deleting, and slows corrections down: both would otherwise write as fast as they can, for ever. In the
// zero value there is no conflict. It is not safe for concurrent use.
type DriftConflict struct {
	corrections int
	last, due   time.Time
}

// Corrected counts a correction. The pause before the next is that of the back-off, within limits.
func (c *DriftConflict) Corrected(now time.Time, backoff func(failures int) time.Duration) {
	if !now.Before(c.Over()) {
		c.corrections = 0
	}
	c.corrections, c.last, c.due = c.corrections+1, now, now
	if c.Going(now) {
		c.due = now.Add(min(backoff(c.corrections-freeCorrections), maxCorrectionPause))
	}
}

// Going reports whether several corrections were undone, and that not long ago.
func (c *DriftConflict) Going(now time.Time) bool {
	return c.corrections > freeCorrections && now.Before(c.Over())
}

// Due returns when the next correction is to be made.
func (c *DriftConflict) Due() time.Time { return c.due }

// Over returns when the conflict is over if nothing is corrected until then.
func (c *DriftConflict) Over() time.Time { return c.last.Add(conflictOver) }
