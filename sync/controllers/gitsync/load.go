package gitsync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/content"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/source/git"
)

// order describes a load job.
type order struct {
	repository git.Repository
	ref        git.Ref
	path       string
	ignore     string
	namespace  string
	timeout    time.Duration
	// how identifies everything but the objects that affects the delivery.
	how string
	// look asks the repository for its newest revision; if it is false, revision is loaded.
	look     bool
	revision git.Revision
	// have is the digest that need not be rendered again.
	have string
}

// loaded is the result of a load job. rendered is nil if nothing had to be rendered.
type loaded struct {
	revision git.Revision
	digest   string
	rendered *rendered
	err      error
}

// readSecret sets the repository, including its credentials.
func (r *Reconciler) readSecret(ctx context.Context, s *scope) error {
	s.repository = git.Repository{URL: s.gs.Spec.URL}
	ref := s.gs.Spec.SecretRef
	if ref == nil {
		return nil
	}
	name := types.NamespacedName{Namespace: s.gs.Namespace, Name: ref.Name}
	secret, err := r.Secrets.Get(ctx, content.Secret, name)
	if apierrors.IsNotFound(err) {
		return reconcile.Waiting(v1alpha1.SecretNotFoundReason, 0, "spec.secretRef: Secret %s does not exist: create it, or correct the name", name)
	}
	if err != nil {
		return reconcile.Failed(v1alpha1.SecretNotFoundReason, "spec.secretRef: %w", err)
	}
	credentials, err := git.CredentialsFromSecret(secret.Data)
	if err != nil {
		return reconcile.Waiting(v1alpha1.InvalidSecretReason, 0, "spec.secretRef: Secret %s: %w", name, err)
	}
	s.repository.Credentials, s.secretHash = credentials, secret.Hash
	return nil
}

// load checks the repository when that is due, and renders what the clusters need. A check that has
// failed, or whose answer is waited for, does not end the pass: what was delivered is still
// maintained (P13).
func (r *Reconciler) load(_ context.Context, s *scope) error {
	r.look(s)
	if s.session.revision.Commit == "" {
		s.pending = s.looking
		return nil
	}
	if r.renderKnown(s); s.pending {
		return nil
	}
	return s.guardEmpty()
}

// look asks the repository for its newest revision when that is due, and renders that if it is
// another.
func (r *Reconciler) look(s *scope) {
	asked := s.asked()
	if asked == s.session.asked && s.session.look.At.After(s.now) {
		return
	}
	o := s.order(true)
	result, done := r.looks.Do(s.gs.Spec.URL, s.session.key, asked, func(ctx context.Context) loaded { return r.fetch(ctx, o) })
	if !done {
		s.looking = true
		return
	}
	if s.looked(asked, result.err, r.kernel.Backoff); result.err == nil {
		s.take(result)
	}
}

// renderKnown renders the known revision if a cluster needs its objects. The mirror has it, so this
// does not wait for the git server.
func (r *Reconciler) renderKnown(s *scope) {
	if !s.needsObjects() {
		return
	}
	o := s.order(false)
	result, done := r.loads.Do(s.gs.Spec.URL, s.session.key, o.digest(o.revision), func(ctx context.Context) loaded { return r.fetch(ctx, o) })
	switch {
	case !done:
		s.pending = true
	case result.err != nil:
		s.looked(s.session.asked, result.err, r.kernel.Backoff)
	default:
		s.take(result)
	}
}

// take records what was loaded.
func (s *scope) take(result loaded) {
	s.session.revision = result.revision
	if result.digest != s.session.digest {
		s.session.digest, s.session.rendered = result.digest, nil
		s.session.retry = reconcile.Retry{}
	}
	if result.rendered != nil {
		s.session.rendered = result.rendered
		s.session.count, s.session.problems = len(result.rendered.objects), result.rendered.problems
	}
}

// asked identifies the question to the repository: if it changes, the repository is asked at once.
func (s *scope) asked() string {
	ref := s.gs.GetRef()
	return fmt.Sprintf("%q %q %s %q %d %q", s.gs.Spec.URL, ref, s.secretHash, s.gs.Spec.Path, s.gs.Generation,
		s.gs.Annotations[v1alpha1.ReconcileAtAnnotation])
}

// looked records how a check of the repository ended and when the next one is due.
func (s *scope) looked(asked string, err error, backoff func(int) time.Duration) {
	s.session.asked, s.session.lookErr, s.session.lookedAt = asked, err, s.now
	interval := s.gs.GetInterval()
	next := time.Now().Add(interval + time.Duration(rand.Int64N(int64(interval)/10+1)))
	if err == nil {
		s.session.look = reconcile.Retry{At: next}
		return
	}
	if s.session.look.Failed(backoff); next.Before(s.session.look.At) {
		s.session.look.At = next
	}
}

// needsObjects reports whether a cluster waits for objects that are not in memory.
func (s *scope) needsObjects() bool {
	if s.session.rendered != nil || s.session.revision.Commit == "" {
		return false
	}
	return slices.ContainsFunc(s.targets(), s.needsDelivery)
}

// guardEmpty refuses to interpret an empty path as a request to delete everything.
func (s *scope) guardEmpty() error {
	got := s.session.rendered
	if got == nil || s.gs.Spec.AllowEmpty || len(got.objects) > 0 || len(got.problems) > 0 {
		return nil
	}
	s.session.rendered = nil
	return reconcile.Waiting(v1alpha1.EmptyPathReason, 0,
		"spec.path: %q holds no manifest at %s; nothing is deleted: add manifests, or set spec.allowEmpty to delete what was delivered",
		s.gs.Spec.Path, s.session.revision)
}

func (s *scope) order(look bool) order {
	ref := s.gs.GetRef()
	o := order{
		repository: s.repository,
		ref:        git.RefOf(&ref),
		path:       s.gs.Spec.Path,
		ignore:     s.gs.GetIgnore(),
		namespace:  s.defaultNamespace(),
		how:        fmt.Sprintf("prune=%t wait=%t", s.gs.GetPrune(), s.gs.Spec.Wait),
		timeout:    s.gs.GetTimeout(),
		look:       look,
		revision:   s.session.revision,
	}
	if look {
		o.have = s.session.digest
	}
	return o
}

// fetch runs the load job.
func (r *Reconciler) fetch(ctx context.Context, o order) loaded {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	result := loaded{revision: o.revision}
	if o.look {
		revision, err := r.Git.Resolve(ctx, o.repository, o.ref)
		if err != nil {
			result.err = sourceError(err)
			return result
		}
		result.revision = revision
	}
	result.digest = o.digest(result.revision)
	if result.digest == o.have {
		return result
	}
	result.rendered, result.err = r.renderRevision(ctx, o, result.revision)
	return result
}

// digest identifies what a revision renders to, and how that is delivered.
func (o order) digest(revision git.Revision) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %q %q %s", revision.Commit, o.path, o.ignore, o.namespace, o.how))
	return hex.EncodeToString(sum[:16])
}

func (r *Reconciler) renderRevision(ctx context.Context, o order, revision git.Revision) (*rendered, error) {
	tree, err := r.Git.Open(ctx, o.repository, revision)
	if err != nil {
		return nil, sourceError(err)
	}
	defer tree.Close()
	root, err := tree.FS("")
	if err != nil {
		return nil, sourceError(err)
	}
	if err := r.renders.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer r.renders.Release(1)
	objects, problems, err := render.Folder(root, o.path, o.ignore)
	if err != nil {
		return nil, renderError(err)
	}
	return &rendered{objects: objects, problems: problems}, nil
}

// renderError adds the reason to a rendering error. The result for a revision does not change, so
// only the next check of the repository can help.
func renderError(err error) error {
	var known *render.Error
	if errors.As(err, &known) {
		return reconcile.Failed(known.Reason, "spec.path: %w", err)
	}
	return err
}

// sourceError adds the reason to an error of the git source.
func sourceError(err error) error { return reconcile.Failed(git.Reason(err), "%w", err) }
