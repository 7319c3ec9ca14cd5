package applicationinstallation

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// helmMethod installs charts as releases. What Helm wrote is watched, not written again.
type helmMethod struct {
	*driver
	engine *release.Engine
}

func newHelmMethod(d *driver) *helmMethod {
	return &helmMethod{driver: d, engine: release.NewEngine().RenderedBy(d.Templates).Remembering(d.memo)}
}

func (m *helmMethod) fetch(ctx context.Context, p plan) (*files, error) {
	if p.source.version.Template.Source.Helm != nil {
		return m.fetchChart(ctx, p.source)
	}
	return m.fetchChartFromGit(ctx, p.source)
}

func (m *helmMethod) install(ctx context.Context, p plan, f *files) acted {
	id := identity(p)
	wanted := desired(p, f)
	wanted.UntouchedAt = func(id manifest.ID) string { return m.applier.UntouchedAt(p.owner, id) }
	result, err := m.engine.Ensure(ctx, p.target, wanted)
	got := acted{release: noted(p, result), wrote: err == nil && (result.Action != release.ActionNone || result.Adopted)}
	m.note(ctx, p, got, slices.Concat(
		altered(p, result.Altered, "it was not used, and another revision was made from the chart"),
		ignored(id, result.Ignored),
		said(id, result.Warnings, result.Kept)))
	if err != nil {
		got.failure = releaseError(result, err)
		return undone(ctx, p, got, result)
	}
	got.inventory = slices.Clone(result.Objects)
	if result.Adopted && p.options != nil {
		// Any user of the namespace may have copied the record, so what an action would have written is written,
		// whatever is to become of drift.
		p.options = p.options.DeepCopy()
		p.options.DriftDetection = v1alpha1.DriftEnabled
	}
	if result.Action == release.ActionNone {
		// Nothing was written, and no event shows what others did while no watch ran.
		return m.compare(ctx, p, got, nil)
	}
	return m.describe(ctx, p, got, result)
}

// resume goes by the record of the release and by its objects: that neither has changed costs one list for
// all releases of a namespace.
func (m *helmMethod) resume(ctx context.Context, p plan, f *files) (acted, bool) {
	if p.applied == "" || p.options.GetDriftDetection() == v1alpha1.DriftWarn || !m.engine.Resume(ctx, p.target, desired(p, f)) {
		return acted{}, false
	}
	got := acted{findings: findings{inventory: slices.DeleteFunc(slices.Clone(p.inventory), isApplication)}, release: p.deployed.known()}
	if got = m.watch(ctx, p, got, apply.Watched{}); got.err != nil {
		return acted{}, false
	}
	return m.name(ctx, p, got)
}

// describe watches the objects of a release, all of which were just written or are as an earlier action
// wrote them, and writes the Application that lists them.
func (m *helmMethod) describe(ctx context.Context, p plan, got acted, result release.Result) acted {
	untouched := sets.New(result.Untouched...)
	anew := slices.DeleteFunc(slices.Clone(got.inventory), untouched.Has)
	if got = m.watch(ctx, p, got, apply.Watched{Written: result.Written, Anew: anew}); got.err != nil {
		return got
	}
	got.heldElsewhere = new([]v1alpha1.Hold)
	got, _ = m.name(ctx, p, got)
	return got
}

// watch watches the objects of a release, the inventory of got.
func (m *helmMethod) watch(ctx context.Context, p plan, got acted, watched apply.Watched) acted {
	watched.IDs, watched.Health = got.inventory, true
	var err error
	if got.warnings, err = m.applier.Watch(ctx, p.owner, watched); err != nil {
		got.err = reconcile.Failed(v1alpha1.InstallFailedReason, "watch the objects of the release: %w", err)
	}
	return got
}

// name writes the Application that lists the objects of a release. It reports whether all of them, and the
// Application, are as the process before left them, so that there was nothing to write.
func (m *helmMethod) name(ctx context.Context, p plan, got acted) (acted, bool) {
	app, err := application(p, got.inventory)
	if err != nil {
		got.err = err
		return got, false
	}
	result := m.applier.Apply(ctx, apply.Request{
		Owner: p.owner, Objects: []manifest.Object{app}, DefaultNamespace: p.resolved.Namespace, Health: true, Digest: p.applied,
	})
	got.inventory = append(got.inventory, app.ID())
	got.problems, got.waiting, got.warnings = advised(result.Problems), result.Waiting, append(got.warnings, result.Warnings...)
	if result.Err != nil {
		got.err = reconcile.Failed(v1alpha1.InstallFailedReason, "write the Application: %w", result.Err)
	}
	return got, result.Unchanged
}

// advised makes problems with the Application say what to do about a conflict: it has no manifest to
// annotate.
func advised(problems []manifest.Problem) []manifest.Problem {
	for i, p := range problems {
		if what, found := strings.CutSuffix(p.Message, apply.AdoptionHint); found && p.File == "" && isApplication(p.ID) {
			problems[i].Message = what + "delete that Application, or give the ApplicationInstallation another name"
		}
	}
	return problems
}

// correct corrects what differs from the release, without creating another revision.
func (m *helmMethod) correct(ctx context.Context, p plan, drifted []manifest.ID) acted {
	got := acted{findings: findings{inventory: slices.DeleteFunc(slices.Clone(p.inventory), isApplication)}}
	dirty := slices.DeleteFunc(slices.Clone(drifted), isApplication)
	if len(drifted) > 0 && len(dirty) == 0 { // the Application alone
		if got = m.watch(ctx, p, got, apply.Watched{}); got.err != nil {
			return got
		}
		got, _ = m.name(ctx, p, got)
		return got
	}
	return m.compare(ctx, p, got, dirty)
}

// compare corrects or, depending on the options, only reports how objects differ from the release;
// if dirty is empty, it checks all of them. Objects count as right from before they are checked, so
// that no edit falls in between: what compare itself writes is seen as drift again, and found to be
// right when that is checked.
func (m *helmMethod) compare(ctx context.Context, p plan, got acted, dirty []manifest.ID) acted {
	anew := dirty
	if len(dirty) == 0 || p.options.GetDriftDetection() == v1alpha1.DriftWarn {
		anew = got.inventory
	}
	if got = m.watch(ctx, p, got, apply.Watched{Anew: anew}); got.err != nil {
		return got
	}
	fix := m.engine.Correct
	switch p.options.GetDriftDetection() {
	case v1alpha1.DriftWarn:
		fix, dirty = m.engine.Detect, nil
	case v1alpha1.DriftDisabled:
		fix = func(context.Context, release.Target, release.Identity, []manifest.ID) (release.Drift, error) {
			return release.Drift{}, nil
		}
	case v1alpha1.DriftEnabled:
	}
	id, held := identity(p), m.elsewhere(p)
	id.Held = held.leaves
	drift, err := fix(ctx, p.target, id, dirty)
	if err == nil {
		got.heldElsewhere = ptr.To(held.holds(dirty))
	}
	switch {
	case p.options.GetDriftDetection() == v1alpha1.DriftWarn:
		got.drifted = described(drift)
	case err == nil, release.ReasonOf(err) == release.ReasonNotDeployed: // also what is missing then was put back
		got.corrected = described(drift)
	}
	switch release.ReasonOf(err) {
	case "":
		got, _ = m.name(ctx, p, got)
		return got
	case release.ReasonAltered: // what it describes is there
		return acted{findings: findings{inventory: p.inventory, warnings: got.warnings}, record: recordUnusable}
	case release.ReasonNotDeployed:
		got.record = recordUnusable
	case release.ReasonGone:
		got.record = recordGone
	}
	got.inventory, got.err = p.inventory, releaseError(release.Result{}, err)
	return got
}

// described returns how each object differed.
func described(drift release.Drift) []string {
	lines := make([]string, 0, len(drift.Objects))
	for _, o := range drift.Objects {
		lines = append(lines, o.String())
	}
	return lines
}

// rollback gives up a revision whose objects did not become healthy in time.
func (m *helmMethod) rollback(ctx context.Context, p plan, why string) acted {
	if p.inst.Status.UpgradeSnapshot != nil {
		return m.giveUpWithData(ctx, p, why)
	}
	id := identity(p)
	var refuted error
	result, err := m.engine.Rollback(ctx, p.target, id, releaseOptions(p), release.Verdict{Why: why, Confirm: func(ctx context.Context) error {
		refuted = m.confirm(ctx, p)
		return refuted
	}})
	if refuted != nil {
		return spared(why, refuted)
	}
	got := acted{release: noted(p, result)}
	switch {
	case release.ReasonOf(err) == release.ReasonAltered:
		got.failure = reconcile.Stalled(v1alpha1.ReleaseAlteredReason, "%s; not rolled back: %w; change the installation to try again", why, err)
	case release.ReasonOf(err) == release.ReasonGone: // there is nothing left to roll back
		got.record, got.failure = recordGone, releaseError(result, err)
	case err != nil:
		got.failure = releaseError(result, err)
	case result.Gone:
		got.failure = reconcile.Stalled(v1alpha1.NotHealthyReason, "uninstalled: %s; change the installation to try again", why)
	default:
		got.failure = reconcile.Stalled(v1alpha1.NotHealthyReason, "rolled back%s: %s; change the installation to try again", p.withoutData(), why)
	}
	if reconcile.IsStalled(got.failure) { // otherwise it is tried again
		got.givenUp = p.installed.moved
	}
	m.note(ctx, p, got, append(altered(p, result.Altered, "it was not used"), said(id, result.Warnings, result.Kept)...))
	switch {
	case err != nil:
		return got
	case result.Gone:
		return m.unname(ctx, p, got)
	default:
		got.inventory = slices.Clone(result.Objects)
		return m.describe(ctx, p, got, result)
	}
}

func (m *helmMethod) uninstall(ctx context.Context, p plan) acted {
	got := acted{findings: findings{inventory: p.inventory}}
	m.applier.Unwatch(p.owner)
	id := identity(p)
	installed := slices.DeleteFunc(slices.Clone(p.inventory), isApplication)
	left, err := m.engine.Uninstall(ctx, p.target, id, releaseOptions(p), installed)
	m.note(ctx, p, got, append(altered(p, left.Altered, "its delete hooks were not run"), said(id, nil, left.Kept)...))
	if err != nil {
		got.err = reconcile.Failed(v1alpha1.UninstallFailedReason, "%w", prefixed("uninstall", p, err))
		return got
	}
	return m.unname(ctx, p, got)
}

// desired returns the release that is planned.
func desired(p plan, f *files) release.Desired {
	wanted := release.Desired{
		Identity:    identity(p),
		Chart:       f.chart.Chart,
		ChartDigest: f.chart.Digest,
		Values:      p.values,
		Claims:      restoredClaims(p.inst),
		Options:     releaseOptions(p),
		Unwanted:    p.unwanted,
	}
	if p.doing != nil {
		wanted.Doing = p.doing.say
	}
	return wanted
}

// identity returns the identity of the release, which is named after the installation.
func identity(p plan) release.Identity {
	return release.Identity{
		Namespace: p.resolved.Namespace,
		Name:      p.inst.Name,
		Owner:     p.owner.String(),
		OwnerHash: p.owner.Hash(),
		Known:     p.vouched(),
		Ignored:   p.ignored,
	}
}

// vouched returns what is known of the release as far as the identity that the installation acts as may
// go by it: what another one rendered may need rights that only this one has, as hooks do that never ran.
func (p plan) vouched() *v1alpha1.ReleaseStatus {
	if known := p.deployed.known(); known != nil && known.ServiceAccountName == p.resolved.ServiceAccountName {
		return known
	}
	return nil
}

func releaseOptions(p plan) release.Options {
	o := p.options
	return release.Options{
		Timeout:      o.GetTimeout(),
		Atomic:       o != nil && o.Atomic,
		KeepUpgrade:  p.inst.Status.UpgradeSnapshot != nil,
		CRDs:         o.GetCRDs(),
		DisableHooks: o != nil && o.DisableHooks,
		HistoryLimit: o.GetHistoryLimit(),
		Lookup:       p.lookup,
		As:           p.resolved.ServiceAccountName,
	}
}

// releaseError adds a reason to an error of the release engine, and decides how to react: what
// cannot get better by itself waits for a change.
func releaseError(result release.Result, err error) error {
	reason := failedReason(result)
	switch release.ReasonOf(err) {
	case release.ReasonValues:
		reason = v1alpha1.InvalidValuesReason
	case release.ReasonRender:
		reason = v1alpha1.InvalidChartReason
	case release.ReasonConflict:
		reason = v1alpha1.ReleaseConflictReason
	case release.ReasonCRD:
		reason = v1alpha1.CRDReplacementRefusedReason
	case release.ReasonUnused:
		reason = v1alpha1.RestoredClaimsUnusedReason
	}
	if release.IsTerminal(err) {
		return reconcile.Stalled(reason, "%w", err)
	}
	return reconcile.Failed(reason, "%w", err)
}

// failedReason returns what failed. An action that was refused before it was recorded left no
// revision to tell by, so the action decides; if it was neither install nor upgrade, the revision
// does.
func failedReason(result release.Result) string {
	switch {
	case result.Action == release.ActionInstall:
		return v1alpha1.InstallFailedReason
	case result.Action == release.ActionUpgrade, result.Release.Revision > 1:
		return v1alpha1.UpgradeFailedReason
	default:
		return v1alpha1.InstallFailedReason
	}
}

func isApplication(id manifest.ID) bool {
	return id.Group == v1alpha1.Group && id.Kind == v1alpha1.ApplicationKind
}
