package gitsync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/source/git"
)

// source is what objects are rendered from. What was delivered keeps the source that it came from,
// until a check of the repository has found another: the spec may name one by now that cannot be
// read.
type source struct {
	repository git.Repository
	revision   git.Revision
	path       string
	ignore     string
}

// known reports whether there is a revision.
func (s source) known() bool { return s.revision.Commit != "" }

// order describes a load job.
type order struct {
	source source
	// look asks the repository for the newest revision of ref. Otherwise the source is read from the
	// mirror, and no server is contacted.
	look bool
	ref  git.Ref
	// have is the digest that need not be rendered again.
	have string

	// owner is the namespace of the GitSync, and namespace that of objects without one.
	owner, namespace string

	timeout    time.Duration
	allowEmpty bool
	// how identifies everything but the objects that affects the delivery.
	how string
}

// loaded is the result of a load job. rendered is nil if nothing had to be rendered.
type loaded struct {
	source   source
	digest   string
	rendered *rendered
	err      error
}

// wanted returns the source that the spec names, without a revision.
func (s *scope) wanted() source {
	return source{repository: s.access.repository, path: s.gs.Spec.Path, ignore: s.gs.GetIgnore()}
}

func (s *scope) order(from source) order {
	ref := s.gs.GetRef()
	return order{
		source:     from,
		ref:        git.RefOf(&ref),
		owner:      s.gs.Namespace,
		namespace:  s.gs.GetDefaultNamespace(),
		timeout:    s.gs.GetTimeout(),
		allowEmpty: s.gs.Spec.AllowEmpty,
		how:        s.how(),
	}
}

// how identifies everything but the objects that affects the delivery.
func (s *scope) how() string {
	text := fmt.Sprintf("prune=%t wait=%t adopt=%t force=%t", s.gs.GetPrune(), s.gs.Spec.Wait, s.gs.Spec.Adopt, s.gs.Spec.Force)
	for _, ignored := range s.gs.Spec.IgnoreDifferences {
		text += fmt.Sprintf(" ignored=%+v %q", ptr.Deref(ignored.Target, v1alpha1.DifferenceTarget{}), ignored.JSONPointers)
	}
	return text
}

// waitTime bounds how long a folder may wait for others to be rendered, and be rendered.
const waitTime = 10 * time.Minute

// fetch runs the load job. Its time does not count while others are rendered.
func (r *Reconciler) fetch(ctx context.Context, o order) loaded {
	timed, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	result := loaded{source: o.source}
	if o.look {
		revision, err := r.Git.Resolve(timed, o.source.repository, o.ref)
		if err != nil {
			result.err = sourceError(err)
			return result
		}
		result.source.revision = revision
	}
	result.digest = o.digest(result.source.revision)
	if result.digest == o.have {
		return result
	}
	tree, err := r.open(timed, o, result.source)
	if err != nil {
		result.err = sourceError(err)
		return result
	}
	defer tree.Close()
	if result.rendered, result.err = r.render(ctx, o, tree); result.err == nil {
		result.err = o.guardEmpty(result)
	}
	return result
}

// digest identifies what a revision renders to, and how that is delivered.
func (o order) digest(revision git.Revision) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %q %q %s", revision.Commit, o.source.path, o.source.ignore, o.namespace, o.how))
	return hex.EncodeToString(sum[:16])
}

// guardEmpty refuses to interpret an empty path as a request to delete everything.
func (o order) guardEmpty(got loaded) error {
	if o.allowEmpty || len(got.rendered.objects) > 0 || len(got.rendered.problems) > 0 {
		return nil
	}
	return reconcile.Failed(v1alpha1.EmptyPathReason,
		"spec.path: %q holds no manifest at %s; nothing is deleted: add manifests, or set spec.allowEmpty to delete what was delivered",
		o.source.path, got.source.revision)
}

func (r *Reconciler) render(ctx context.Context, o order, tree *git.Tree) (*rendered, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	ctx = render.On(ctx, render.Terms{For: o.owner, Time: o.timeout})
	root, err := tree.FS("")
	if err != nil {
		return nil, sourceError(err)
	}
	objects, problems, err := r.Renders.Folder(ctx, root, o.source.path, o.source.ignore)
	if err != nil {
		return nil, renderError(err)
	}
	return &rendered{objects: objects, problems: problems, ignored: ignored(objects)}, nil
}

// open returns the files of a source. A look may fetch them.
func (r *Reconciler) open(ctx context.Context, o order, from source) (*git.Tree, error) {
	if o.look {
		return r.Git.Open(ctx, from.repository, from.revision)
	}
	return r.Git.Cached(from.repository, from.revision)
}

// renderError adds the reason to a rendering error. The result for a revision does not change, so
// only the next check of the repository can help.
func renderError(err error) error {
	reason := v1alpha1.BuildFailedReason
	var known *render.Error
	if errors.As(err, &known) {
		reason = known.Reason
	}
	return reconcile.Failed(reason, "spec.path: %w", err)
}

// sourceError adds the reason to an error of the git source.
func sourceError(err error) error { return reconcile.Failed(git.Reason(err), "%w", err) }
