package applicationinstallation

import (
	"context"
	"errors"
	"slices"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/source/git"
)

// kustomizeMethod builds a folder of a git repository and applies it. It does not use values:
// a kustomization has none.
type kustomizeMethod struct{ *driver }

func (m kustomizeMethod) fetch(ctx context.Context, p plan) (*files, error) {
	return m.build(ctx, p, git.Revision{})
}

// build builds the folder at a revision, or at the newest one if that is zero.
func (m kustomizeMethod) build(ctx context.Context, p plan, at git.Revision) (*files, error) {
	if p.source.version.Template.Source.Git == nil {
		return nil, reconcile.Stalled(v1alpha1.InvalidSpecReason, "method kustomize needs a git source")
	}
	tree, revision, err := m.openTree(ctx, p.source, at)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	root, err := tree.FS("")
	if err != nil {
		return nil, gitError(err)
	}
	got := &files{revision: revision.String(), git: revision}
	from := p.source.version.Template.Source.Git
	got.objects, got.problems, err = m.Renders.Folder(ctx, root, from.Path, "")
	var known *render.Error
	if errors.As(err, &known) {
		return nil, reconcile.Failed(known.Reason, "%w at %s", err, revision)
	}
	if len(got.objects) == 0 && len(got.problems) == 0 {
		return nil, reconcile.Failed(v1alpha1.EmptyPathReason, "%q holds no manifest at %s", from.Path, revision)
	}
	for _, o := range got.objects {
		o.SetLabel(v1alpha1.ReleaseLabel, p.inst.Name) // the generated Application selects by it
	}
	return got, nil
}

// resume leaves it to install: Apply finds out by itself.
func (m kustomizeMethod) resume(context.Context, plan, *files) (acted, bool) { return acted{}, false }

func (m kustomizeMethod) install(ctx context.Context, p plan, f *files) acted {
	if err := usesRestored(p, f.objects); err != nil {
		return notInstalled(err)
	}
	got, _ := m.apply(ctx, p, f)
	return got
}

// apply does what install does, and also returns what it changed.
func (m kustomizeMethod) apply(ctx context.Context, p plan, f *files) (acted, []apply.Change) {
	app, err := application(p, m.applier.Intent(f.objects, p.resolved.Namespace))
	if err != nil {
		return notCorrected(err), nil
	}
	request := apply.Request{
		Owner:            p.owner,
		Objects:          append([]manifest.Object{app}, f.objects...),
		Inventory:        p.inventory,
		Prune:            true,
		Unread:           f.problems,
		Ignored:          p.ignored,
		DefaultNamespace: p.resolved.Namespace,
		Health:           true,
		Intent:           m.declare(p),
		As:               writers(p),
		Held:             p.held,
		Digest:           p.applied,
	}
	if p.doing != nil {
		request.Progress = &p.doing.applied
	}
	result := m.applier.Apply(ctx, request)
	got := acted{findings: findings{inventory: result.Inventory, waiting: result.Waiting, warnings: result.Warnings}, applied: &result}
	got.problems = append(got.problems, f.problems...)
	got.problems = append(got.problems, advised(result.Problems)...)
	if result.Err != nil {
		got.err = reconcile.Failed(v1alpha1.InstallFailedReason, "%w", prefixed("install", p, result.Err))
	}
	return got, result.Changes
}

// correct rebuilds what is installed, because that is not kept in memory, and nothing newer.
func (m kustomizeMethod) correct(ctx context.Context, p plan, drifted []manifest.ID) acted {
	found, err := m.build(ctx, p, p.installed.revision)
	if err != nil {
		return notCorrected(err)
	}
	got, changes := m.apply(ctx, p, found)
	for _, c := range changes {
		switch {
		case c.Action == apply.Created && slices.Contains(drifted, c.ID):
			got.corrected = append(got.corrected, c.ID.String()+" was missing")
		case c.Action == apply.Corrected:
			got.corrected = append(got.corrected, c.ID.String()+" differed")
		}
	}
	return got
}

// rollback leaves what was applied: there is no earlier revision to go back to.
func (m kustomizeMethod) rollback(ctx context.Context, p plan, why string) acted {
	if err := m.confirm(ctx, p); err != nil {
		return spared(why, err)
	}
	return acted{findings: findings{inventory: p.inventory, failure: reconcile.Stalled(v1alpha1.NotHealthyReason, "%s", why)}}
}

// writers returns who writes what: Waybill itself the Application that describes the installation, and
// the installation's identity everything else.
func writers(p plan) func(manifest.ID) apply.Target {
	if p.resolved.ServiceAccountName == "" {
		return nil
	}
	return func(id manifest.ID) apply.Target {
		if isApplication(id) && id.Namespace == p.resolved.Namespace && id.Name == p.inst.Name {
			return nil
		}
		return p.target
	}
}

func (m kustomizeMethod) uninstall(ctx context.Context, p plan) acted {
	result := m.applier.DeleteAs(ctx, p.owner, p.inventory, writers(p))
	got := acted{findings: findings{inventory: result.Inventory, problems: result.Problems, waiting: result.Inventory}}
	if result.Err != nil {
		got.err = reconcile.Failed(v1alpha1.UninstallFailedReason, "%w", prefixed("uninstall", p, result.Err))
	}
	return got
}
