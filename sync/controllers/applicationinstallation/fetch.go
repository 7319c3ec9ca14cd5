package applicationinstallation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/reconcile"
)

// gitInterval is how often a git reference that may move is looked at if the installation sets no
// reconciliationInterval.
const gitInterval = 5 * time.Minute

// prepareTimeout bounds fetching a chart or building a kustomization.
const prepareTimeout = 2 * time.Minute

// fetching is what a source is being asked for.
type fetching int

const (
	// fetchingNothing: no source is being asked.
	fetchingNothing fetching = iota
	// fetchingMove: whether a moving source points at something else by now.
	fetchingMove
	// fetchingWanted: what is to be installed.
	fetchingWanted
)

// prepare fetches what is to be installed if the cluster does not have it yet, and looks whether a
// moving source has moved. Neither keeps what is installed from being corrected: while the source
// is asked, and if that fails, it is kept as it is.
func (d *driver) prepare(s *scope) {
	needed := s.needsFiles()
	switch {
	case !needed && !s.lookDue():
		d.fetches.Drop(d.jobKey(s)) // nobody asks for its result any more
		return
	case s.backedOff():
		return
	}
	p, m, key := d.plan(s), d.methods[s.method()], s.key()
	if s.session.fetch == nil {
		s.session.fetch = d.newDoing(key)
	}
	progress := s.session.fetch.shown
	got, done := d.fetches.Do(p.source.url(), d.jobKey(s), s.asked(), func(ctx context.Context) prepared {
		defer progress.Begin()()
		ctx, cancel := context.WithTimeout(d.onTerms(ctx, key), prepareTimeout)
		defer cancel()
		found, err := m.fetch(ctx, p)
		return prepared{digest: p.digest, source: p.source, files: found, err: err}
	})
	switch {
	case !done && needed:
		s.fetching = fetchingWanted
		s.pending = !s.session.acted && s.lookErr() == nil
		if _, long := progress.Shown(); long {
			s.showFirst(fmt.Sprintf("fetching %s %s", s.resolved.Name, s.resolved.Version))
		}
		return
	case !done:
		s.fetching = fetchingMove
		return
	}
	s.looked(got.err, d.kernel.Backoff)
	if got.err == nil {
		s.session.prepare(&got)
	}
}

// prepare keeps what was fetched until it is installed. If that is what is installed already,
// corrections use its credentials from now on: those of the install may have been replaced.
func (s *session) prepare(got *prepared) {
	s.prepared = got
	if got.moved() == s.installed.moved {
		s.installed.source = got.source
	}
}

// moved returns the digest together with what a moving source points at.
func (p *prepared) moved() string {
	moved := p.digest + "/" + p.files.revision
	if p.files.chart != nil {
		moved += "/" + p.files.chart.Digest
	}
	return moved
}

// moves reports whether the source can change without a change of the definition.
func (s *scope) moves() bool { return origin{version: s.version}.moves() }

// lookDue reports whether it is time to ask a moving source where it points.
func (s *scope) lookDue() bool {
	return s.moves() && (s.session.asked != s.asked() || s.isDue(s.session.look.At))
}

// lookErr returns the error that the source was last asked with; nil if something else is to be
// asked now.
func (s *scope) lookErr() error {
	if s.session.asked != s.asked() {
		return nil
	}
	return s.session.lookErr
}

// unmet returns why what is wanted cannot be had, or not yet; nil if nothing says so.
func (s *scope) unmet() error { return cmp.Or(s.missing, s.waits, s.lookErr()) }

// backedOff reports whether the source must not be asked yet, because the same question has just
// failed.
func (s *scope) backedOff() bool { return s.lookErr() != nil && !s.isDue(s.session.look.At) }

// asked identifies the question to a source: a different question is asked at once.
func (s *scope) asked() string {
	question := []string{s.digest, s.requestedAt(), s.interval().String()}
	for _, secret := range []*content.Content{s.credentials, s.authorities} {
		if secret != nil {
			question = append(question, secret.Hash)
		}
	}
	return strings.Join(question, " ")
}

// looked records how asking the source ended, and when that is due again.
func (s *scope) looked(err error, backoff func(int) time.Duration) {
	if err == nil || s.session.asked != s.asked() {
		s.session.look = reconcile.Retry{}
	}
	s.session.asked, s.session.lookErr = s.asked(), err
	switch {
	case reconcile.IsStalled(err):
		s.session.look.At = time.Time{}
	case err != nil:
		s.session.look.Failed(backoff)
	case s.moves():
		s.session.look.At = after(cmp.Or(s.interval(), gitInterval))
	}
}

// needsFiles reports whether there is something to install that is not at hand.
func (s *scope) needsFiles() bool {
	if s.session.prepared != nil && s.session.prepared.digest == s.digest {
		return false
	}
	if a := s.session.awaiting; a.digest == s.digest && a.moved != s.session.installed.moved {
		return a.over
	}
	return s.session.installed.digest != s.digest || s.reinstallDue()
}

func (s *scope) requestedAt() string { return s.inst.Annotations[v1alpha1.ReconcileAtAnnotation] }

// interval returns the time between full comparisons with the cluster, and between looks; zero for
// none.
func (s *scope) interval() time.Duration { return max(s.inst.Spec.ReconciliationInterval.Duration, 0) }

// after returns the end of an interval that starts now, up to a tenth later so that not all
// installations of a cluster are due at once. It returns the zero time if there is no interval.
func after(interval time.Duration) time.Time {
	if interval == 0 {
		return time.Time{}
	}
	return time.Now().Add(interval + time.Duration(rand.Int64N(int64(interval)/10+1)))
}
