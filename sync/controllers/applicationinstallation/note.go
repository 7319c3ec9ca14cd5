package applicationinstallation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// noteTime bounds writing the state of a release to the status while the process ends.
const noteTime = 5 * time.Second

// note keeps the new state of a release for the next pass. If there may be no next pass, note also
// writes it to the status: otherwise the next driver would install again what it knows nothing of.
func (m *helmMethod) note(ctx context.Context, p plan, got acted, remarks []remark) {
	p.deployed.note(got.release, remarks...)
	m.noteLast(ctx, p, got)
}

// noteLast writes the state of a release to the status if there may be no next pass: the process
// drains, or the cluster is left, or driven with other credentials.
func (d *driver) noteLast(ctx context.Context, p plan, got acted) {
	if got.release == nil && got.givenUp == "" || !d.Drain.Draining() && d.cluster.Context().Err() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	inst := p.inst.DeepCopy()
	inst.Status.Release, inst.Status.Rendering = p.deployed.known(), nil
	inst.Status.History = p.attempt.recorded(inst.Status.History, got, inst.Status.Release)
	if got.wrote {
		inst.Status.HealthAwaitedSince = sinceOf(awaitedFrom(p.options))
	}
	if got.givenUp != "" {
		inst.Status.GivenUp, inst.Status.UpgradeRollback, inst.Status.HealthAwaitedSince = got.givenUp, got.rollback, nil
		conditions.MarkFalse(inst, v1alpha1.InstalledCondition, reconcile.ReasonOf(got.failure), "%s", got.failure)
	}
	if err := d.kernel.RecordChange(ctx, d.client, p.inst, inst); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "note release", "cluster", d.cluster.Name(), "installation", p.inst.Namespace+"/"+p.inst.Name)
	}
}

// maxRemark is the maximum length of a remark, in bytes: the note of an event has at most 1,024.
const maxRemark = 1000

// remark is what users should know about an action, even if it succeeded.
type remark struct{ reason, note string }

// noted returns the status of a release, which is empty if the action has uninstalled it; nil if the
// action made nothing of the release.
func noted(p plan, result release.Result) *v1alpha1.ReleaseStatus {
	if result.Release.Name == "" && !result.Gone {
		return nil
	}
	made := result.Release
	made.ServiceAccountName = p.resolved.ServiceAccountName
	return &made
}

// altered returns a remark on the records of a release that differ from what was noted, and on what
// came of it; none if there are no such records.
func altered(p plan, revisions []int, came string) []remark {
	if len(revisions) == 0 {
		return nil
	}
	why := "is not as Waybill noted it"
	if known := p.deployed.known(); known != nil && p.vouched() == nil {
		why = "was made as " + describeAccount(p.inst.Namespace, known.ServiceAccountName)
	}
	return []remark{{v1alpha1.ReleaseAlteredReason, fmt.Sprintf("Helm's record of revision %s of release %s %s: %s",
		strings.Trim(fmt.Sprint(revisions), "[]"), identity(p), why, came)}}
}

// ignored returns a remark on Secrets that pass for records of a release; none if there are none.
func ignored(id release.Identity, secrets []string) []remark {
	if len(secrets) == 0 {
		return nil
	}
	return []remark{{v1alpha1.ReleaseAlteredReason, excerpt.Of(fmt.Sprintf("the following Secrets in namespace %s are labelled as Helm's records of release %s, "+
		"but Helm did not create them: their names or revisions do not match. They are ignored; delete them: %s", id.Namespace, id.Name, excerpt.Names(secrets, 5)), maxRemark)}}
}

// said returns a remark on what the API server and the chart's schema warned of during an action,
// and on which objects stay that were to be deleted.
func said(id release.Identity, warnings []string, kept []release.Kept) []remark {
	lines := slices.Clone(warnings)
	for _, k := range kept {
		lines = append(lines, fmt.Sprintf("%s stays: %s", k.ID, k.Why))
	}
	if len(lines) == 0 {
		return nil
	}
	return []remark{{v1alpha1.ReleaseWarningReason, excerpt.Of(fmt.Sprintf("release %s: %s", id, strings.Join(lines, "; ")), maxRemark)}}
}
