package applicationinstallation

import (
	"context"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/git"
)

// method turns the files of a source into objects in a cluster; to add another one, implement it
// and name it in newDriver (K26). Its functions run in jobs.
type method interface {
	// fetch brings the files of the source to the hub's side, ready to be installed.
	fetch(ctx context.Context, p plan) (*files, error)
	// install brings the cluster to the planned state. A second call changes nothing.
	install(ctx context.Context, p plan, f *files) acted
	// correct corrects the objects that others have changed; if there are none, it checks all.
	correct(ctx context.Context, p plan, drifted []manifest.ID) acted
	// rollback gives up what was installed last, because it did not become healthy.
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
	// revision is the installed revision of a git source.
	revision git.Revision
	// begun is that of the session.
	begun bool
	// deployed is that of the session, and inventory what it listed when the job began.
	deployed  *deployed
	inventory []manifest.ID
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
	err    error
}

// installed is what corrections go by, which need not be what is wanted by now.
type installed struct {
	method   v1alpha1.Method
	resolved v1alpha1.ResolvedApplication
	// source and revision are needed by method kustomize only, and not known after a start.
	source   origin
	revision git.Revision
}

// of returns the plan for what is installed instead of what is wanted.
func (p plan) of(i installed) plan {
	p.resolved, p.source, p.revision = i.resolved, i.source, i.revision
	return p
}

// acted is the outcome of an action in the cluster.
type acted struct {
	// input is the digest that was installed.
	input string
	// wrote says that something was installed that was not there before.
	wrote bool
	// lasts says that err is that of an install or a rollback, which no correction ends.
	lasts bool
	// gone says that there was nothing to correct by, so the application must be installed again.
	gone bool
	// release of method helm.
	release *v1alpha1.ReleaseStatus
	// inventory is what is, or may be, in the cluster.
	inventory []manifest.ID
	problems  []manifest.Problem
	// waiting is what will arrive as an event: a kind, a namespace, the end of an object.
	waiting []manifest.ID
	// drifted is what was found and left as it is, corrected what was corrected: how each object
	// differed.
	drifted, corrected []string
	err                error
}

func (d *driver) plan(s *scope) plan {
	return plan{
		owner:      s.owner,
		inst:       s.inst.DeepCopy(),
		definition: s.definition,
		resolved:   s.resolved,
		namespace:  s.namespace(),
		options:    s.options(),
		values:     s.values,
		source:     origin{version: s.version, credentials: s.credentials, authorities: s.authorities},
		digest:     s.digest,
		revision:   s.session.installed.revision,
		begun:      s.session.begun,
		deployed:   &s.session.deployed,
	}
}
