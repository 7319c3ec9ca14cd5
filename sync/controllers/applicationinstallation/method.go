package applicationinstallation

import (
	"context"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/git"
)

// method turns the files of a source into objects in a cluster; to add another one, implement it
// and name it in newDriver. Its functions run in jobs.
type method interface {
	// fetch brings the files of the source to the hub's side, ready to be installed.
	fetch(ctx context.Context, p plan) (*files, error)
	// resume takes up what the process before has left, before anything else is done after a start, and
	// reports whether nothing has changed since. If not, install follows.
	resume(ctx context.Context, p plan, f *files) (acted, bool)
	// install brings the cluster to the planned state. A second call changes nothing.
	install(ctx context.Context, p plan, f *files) acted
	// correct corrects the objects that others have changed; if there are none, it checks all.
	correct(ctx context.Context, p plan, drifted []manifest.ID) acted
	// rollback gives up what was installed last, because it did not become healthy; it looks once more
	// before it does anything.
	rollback(ctx context.Context, p plan, why string) acted
	// uninstall removes everything that install has created.
	uninstall(ctx context.Context, p plan) acted
}

// plan is what a job needs to know of a pass. Nothing in it is changed.
type plan struct {
	owner      apply.Owner
	inst       *v1alpha1.ApplicationInstallation
	definition *v1alpha1.ApplicationDefinition
	resolved   v1alpha1.ResolvedApplication
	namespace  v1alpha1.TargetNamespace
	options    *v1alpha1.HelmDeployOptions
	values     map[string]any
	source     origin
	digest     string
	// ignored are the fields that others set.
	ignored *ignore.Rules
	// held has the objects of a kustomization that were held when they were last applied.
	held []v1alpha1.Hold
	// lookup lets templates look up objects of the cluster.
	lookup bool
	// target is the cluster under the identity that the installation acts as; set by actingAs.
	target *cluster.Cluster
	// allRights says how Waybill itself gets all rights in the cluster; set by actingAs.
	allRights func() string
	// installed is set by of.
	installed installed
	// deployed is that of the session, and inventory what it listed when the job began.
	deployed  *deployed
	inventory []manifest.ID
	// applied is what the status says that the process before left, for the first action after a start;
	// empty for any other.
	applied string
	// unwanted is closed when the outcome is not wanted any more.
	unwanted <-chan struct{}
	// attempt is what the history says that the job is for.
	attempt attempt
	// doing receives what the job is doing; nil outside of a job.
	doing *doing
}

// files are what a method fetched: a chart, or the objects of a kustomization.
type files struct {
	// revision of the source: the chart's version, or a git revision.
	revision string
	// git is the revision of a git source.
	git git.Revision
	// chart of method helm.
	chart *chart.Chart
	// objects and the problems with them, of method kustomize.
	objects  []manifest.Object
	problems []manifest.Problem
}

// prepared is what was prepared for the digest.
type prepared struct {
	digest string
	source origin
	files  *files
}

// installed is what was last installed, or tried; corrections go by it, and not by what is wanted.
type installed struct {
	// digest and moved are those of what was prepared; empty if it must be installed again.
	digest, moved string
	// source and revision are needed by method kustomize only, and not known after a start.
	source   origin
	revision git.Revision
}

// of returns the plan for what is installed instead of what is wanted.
func (p plan) of(app v1alpha1.ResolvedApplication, i installed) plan {
	p.resolved, p.source, p.installed = app, i.source, i
	return p
}

func (d *driver) plan(s *scope) plan {
	p := plan{
		owner:      s.owner,
		inst:       s.inst.DeepCopy(),
		definition: s.definition,
		resolved:   s.resolved,
		namespace:  s.namespace(),
		options:    s.options(),
		values:     s.values,
		source:     s.source,
		digest:     s.digest,
		ignored:    s.ignored,
		held:       s.heldObjects(),
		lookup:     s.lookup(),
		deployed:   &s.session.deployed,
	}
	if !s.session.acted && !s.session.holding.held() {
		p.applied = s.inst.Status.AppliedDigest
	}
	return p
}
