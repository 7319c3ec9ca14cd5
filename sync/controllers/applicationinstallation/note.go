package applicationinstallation

import (
	"context"
	"fmt"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/release"
)

// noteTime bounds writing down what was made of a release while the process ends.
const noteTime = 5 * time.Second

// note keeps what was made of a release for the next pass, and says at once in the status what
// there may be no pass for any more: the next process would make anew what it knows nothing of.
func (m *helmMethod) note(ctx context.Context, p plan, made *v1alpha1.ReleaseStatus, altered string) {
	p.ledger.note(made, altered)
	if made == nil || !m.Drain.Draining() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	inst := p.inst.DeepCopy()
	inst.Status.Release = made
	if err := m.kernel.RecordChange(ctx, m.client, p.inst, inst); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "note release", "cluster", m.cluster.Name(), "installation", p.inst.Namespace+"/"+p.inst.Name)
	}
}

// noted is what the status says of a release; nil where nothing came of the action.
func noted(result release.Result) *v1alpha1.ReleaseStatus {
	if result.Release.Name == "" {
		return nil
	}
	return &result.Release
}

// altered says which records of a release are not as they were noted, and what came of it;
// nothing where all are.
func altered(id release.Identity, revisions []int, came string) string {
	if len(revisions) == 0 {
		return ""
	}
	return fmt.Sprintf("Helm's record of revision %s of release %s is not as Waybill noted it: %s",
		strings.Trim(fmt.Sprint(revisions), "[]"), id, came)
}
