package applicationinstallation

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/source/subscription"
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
	if !needed && !s.source.moves() {
		s.looked = s.session.source.Rest()
		return
	}
	var got *prepared
	if s.looked, got = s.session.source.Set(d.question(s, needed)); got != nil {
		s.session.prepare(got)
	}
	switch {
	case s.looked.Phase != subscription.Asking:
	case needed:
		s.fetching = fetchingWanted
		s.pending = !s.session.acted && s.lookErr() == nil
		if s.looked.Slow {
			s.showFirst(fmt.Sprintf("fetching %s %s", s.resolved.Name, s.resolved.Version))
		}
	default:
		s.fetching = fetchingMove
	}
}

// question returns what the source is asked, and when.
func (d *driver) question(s *scope, needed bool) subscription.Question[prepared] {
	p, m, key := d.plan(s), d.methods[s.method()], s.key()
	q := subscription.Question[prepared]{ID: s.question(), Server: p.source.url(), Lacking: needed}
	if s.source.moves() {
		q.Every = cmp.Or(s.interval(), gitInterval)
	}
	q.Ask = func(ctx context.Context) (prepared, error) {
		ctx, cancel := context.WithTimeout(d.onTerms(ctx, key), prepareTimeout)
		defer cancel()
		found, err := m.fetch(ctx, p)
		return prepared{digest: p.digest, source: p.source, files: found}, err
	}
	return q
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

// lookErr returns the error that the source was last asked with; nil if something else is to be
// asked now.
func (s *scope) lookErr() error { return s.looked.ErrOf(s.question()) }

// unmet returns why what is wanted cannot be had, or not yet; nil if nothing says so.
func (s *scope) unmet() error { return cmp.Or(s.missing, s.waits, s.lookErr()) }

// question identifies the question to a source: a different question is asked at once.
func (s *scope) question() string {
	question := []string{s.digest, s.requestedAt(), s.interval().String()}
	for _, secret := range []*content.Content{s.source.credentials, s.source.authorities} {
		if secret != nil {
			question = append(question, secret.Hash)
		}
	}
	return strings.Join(question, " ")
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
