package gitsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/sync/source/subscription"
)

// patience is how long a GitSync without objects waits for the git server before it tries the
// mirror, and before its conditions say what it waits for. Most servers answer sooner.
const patience = 5 * time.Second

// access is how the repository is read.
type access struct {
	repository git.Repository
	// missing says why the repository lacks its credentials.
	missing error
	// hash identifies the content of the Secret; empty without one.
	hash string
}

// readSecret sets how the repository is read. Without credentials it cannot be asked, but the pass goes
// on: what was delivered is still maintained.
func (r *Reconciler) readSecret(ctx context.Context, s *scope) error {
	s.access.repository = git.Repository{URL: s.gs.Spec.URL}
	ref := s.gs.Spec.SecretRef
	if ref == nil {
		return nil
	}
	name := types.NamespacedName{Namespace: s.gs.Namespace, Name: ref.Name}
	secret, err := r.Secrets.Get(ctx, content.Secret, name)
	if apierrors.IsNotFound(err) {
		s.access.missing = reconcile.Failed(v1alpha1.SecretNotFoundReason, "spec.secretRef: Secret %s does not exist: create it, or correct the name", name)
		return nil
	}
	if err != nil {
		s.access.missing = reconcile.Failed(v1alpha1.SecretNotFoundReason, "spec.secretRef: %w", err)
		return nil
	}
	credentials, err := git.CredentialsFromSecret(secret.Data)
	if err != nil {
		s.access.missing = reconcile.Failed(v1alpha1.InvalidSecretReason, "spec.secretRef: Secret %s: %w", name, err)
		return nil
	}
	s.access.repository.Credentials, s.access.hash = credentials, secret.Hash
	return nil
}

// load checks the repository when that is due, and renders what the clusters need. A check that has
// failed, or whose answer is waited for, does not end the pass: what was delivered is still
// maintained.
func (r *Reconciler) load(_ context.Context, s *scope) error {
	r.look(s)
	if !s.waits() {
		r.resume(s)
	}
	if !s.pending {
		r.renderKnown(s)
	}
	s.pending = s.pending || s.waits()
	return nil
}

// look asks the repository for its newest revision when that is due, and renders that if it is
// another, or if the mirror has lost the known one.
func (r *Reconciler) look(s *scope) {
	o := s.order(s.wanted())
	o.look, o.have = true, s.session.desired.have()
	var result *loaded
	s.looked, result = s.session.repository.Set(subscription.Question[loaded]{
		ID:      s.question(),
		Server:  s.gs.Spec.URL,
		Every:   s.gs.GetInterval(),
		Lacking: s.session.desired.absent,
		Missing: s.access.missing,
		Ask: func(ctx context.Context) (loaded, error) {
			got := r.fetch(ctx, o)
			return got, got.err
		},
	})
	if result == nil {
		return
	}
	s.take(*result)
	switch {
	case result.rendered != nil:
		r.loads.Drop(s.session.key) // the revision before is not needed any more
	case s.session.desired.absent: // which was not known when this look began
		r.look(s)
	}
}

// asking reports whether the repository is being asked, which ends with an event.
func (s *scope) asking() bool { return s.looked.Phase == subscription.Asking }

// waits reports whether the git server has a moment more to answer, before the pass goes on without
// the objects that it lacks.
func (s *scope) waits() bool { return s.waitsUntil().After(s.now) }

// waitsUntil returns when the conditions begin to say that the git server is waited for; zero if it is
// not.
func (s *scope) waitsUntil() time.Time {
	if !s.asking() || !s.lacksObjects() {
		return time.Time{}
	}
	return s.looked.Began.Add(patience)
}

// resume continues after a start with the revision that the status names, if the git server does not
// answer and the mirror has that revision: what is delivered is then watched and corrected without
// the server.
func (r *Reconciler) resume(s *scope) {
	if s.session.desired.resumed || s.session.desired.source.known() || s.access.missing != nil || !s.asking() && s.looked.Err == nil {
		return
	}
	from, ok := s.attempted()
	if !ok {
		s.session.desired.resumed = true
		return
	}
	if result, done := r.loadCached(s, from); done {
		// If the mirror does not have it, only the server can help.
		if s.session.desired.resumed = true; result.err == nil {
			s.take(result)
		}
	}
}

// attempted returns the source of the revision that was last delivered, as far as the spec is still
// the one that the status is about (attemptedRevision).
func (s *scope) attempted() (source, bool) {
	from := s.wanted()
	var ok bool
	from.revision, ok = git.ParseRevision(s.gs.Status.AttemptedRevision)
	return from, ok && s.gs.Status.ObservedGeneration == s.gs.Generation
}

// renderKnown renders the known revision if a cluster needs its objects. It reads the mirror that
// the revision is in, and never waits for a git server. If the mirror has lost the revision, the
// repository is asked.
func (r *Reconciler) renderKnown(s *scope) {
	if s.session.desired.absent || !s.needsObjects() {
		return
	}
	switch result, done := r.loadCached(s, s.session.desired.source); {
	case !done:
	case errors.Is(result.err, git.ErrAbsent):
		s.session.desired.absent = true
		r.look(s)
	case result.err != nil:
		s.looked = s.session.repository.Fail(result.err)
	default:
		s.take(result)
	}
}

// loadCached renders a source that is in the mirror.
func (r *Reconciler) loadCached(s *scope, from source) (loaded, bool) {
	o := s.order(from)
	result, done := r.loads.Do(s.gs.Spec.URL, s.session.key, o.digest(from.revision), func(ctx context.Context) loaded { return r.fetch(ctx, o) })
	s.pending = s.pending || !done
	return result, done
}

func (s *scope) take(result loaded) { s.session.desired.take(result, s.needsObjects) }

// question identifies the question to the repository: if it changes, the repository is asked at once.
func (s *scope) question() string {
	ref := s.gs.GetRef()
	return fmt.Sprintf("%q %q %s %q %d %q %v", s.gs.Spec.URL, ref, s.access.hash, s.gs.Spec.Path, s.gs.Generation,
		s.gs.Annotations[v1alpha1.ReconcileAtAnnotation], s.access.missing)
}

// needsObjects reports whether a cluster waits for objects that are not in memory.
func (s *scope) needsObjects() bool {
	if s.session.desired.rendered != nil || !s.session.desired.source.known() {
		return false
	}
	return slices.ContainsFunc(s.targets(), s.needsDelivery)
}

// lacksObjects reports whether what the clusters need can only come from the git server.
func (s *scope) lacksObjects() bool {
	return !s.session.desired.source.known() || s.session.desired.absent && s.needsObjects()
}
