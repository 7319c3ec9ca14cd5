package reconcile

import "time"

// Limits of a fight.
const (
	// freeCorrections is how many corrections follow one another without a pause.
	freeCorrections = 3
	// maxCorrectionPause is the longest pause before a correction.
	maxCorrectionPause = time.Minute
	// fightOver is how long there must be peace before corrections are counted from zero again.
	fightOver = 2 * time.Minute
)

// Fight counts how often something was put right that somebody else keeps changing or deleting, and
// slows that down: two who are at odds would otherwise write as fast as they can, for ever. In the
// zero value there is peace. It is not safe for concurrent use.
type Fight struct {
	corrections int
	last, due   time.Time
}

// Corrected counts a correction. The pause before the next is that of the back-off, within limits.
func (f *Fight) Corrected(now time.Time, backoff func(failures int) time.Duration) {
	if !now.Before(f.Over()) {
		f.corrections = 0
	}
	f.corrections, f.last, f.due = f.corrections+1, now, now
	if f.Going(now) {
		f.due = now.Add(min(backoff(f.corrections-freeCorrections), maxCorrectionPause))
	}
}

// Going reports whether somebody else has undone several corrections, and that not long ago.
func (f *Fight) Going(now time.Time) bool {
	return f.corrections > freeCorrections && now.Before(f.Over())
}

// Due returns when the next correction is to be made.
func (f *Fight) Due() time.Time { return f.due }

// Over returns when the fight is over if nothing is corrected until then.
func (f *Fight) Over() time.Time { return f.last.Add(fightOver) }
