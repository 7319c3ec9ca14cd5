package gitsync

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// report turns the session into the status and the outcome of the pass.
func (s *scope) report() (reconcile.Outcome, error) {
	problems := s.problems()
	s.gs.Status.Clusters = s.clusterStatuses()
	s.gs.Status.AppliedDigest = ""
	if own := s.session.targets[""]; own != nil {
		s.gs.Status.AppliedDigest = own.achieved.applied
	}
	s.reportHeld()
	if s.session.desired.source.known() { // otherwise nothing newer is known than what the status says
		s.gs.Status.ProblemCount = int32(len(problems))
		s.gs.Status.Problems = reconcile.Problems(problems)
		s.gs.Status.AttemptedRevision = s.attemptedRevision()
	}
	if s.session.desired.source.known() {
		s.session.reported = s.session.desired.digest
	}
	err := s.firstError(problems)
	outcome := reconcile.Outcome{RequeueAfter: s.requeueAfter()}
	if err != nil {
		return outcome, err
	}
	if waiting := s.unfinished(); waiting != "" {
		outcome.Unknown, outcome.Message = v1alpha1.ProgressingReason, waiting+s.warnings(apply.ReasonPruneHeld)+s.pausedNote()
		return outcome, nil
	}
	if s.gs.Spec.Wait {
		if sick := s.health(); !sick.Healthy() {
			return s.reportSick(outcome, sick)
		}
	}
	s.session.sick = sickness{}
	if _, behind := s.pausedClusters(); len(behind) > 0 {
		return s.reportPaused(outcome, behind), nil
	}
	s.gs.Status.Revision = s.session.desired.source.revision.String()
	outcome.Message = s.message() + s.notes() + s.pausedNote() + s.session.desired.ignored
	return outcome, nil
}

// notes say, to be appended to a message, what is not as it could be where all was applied.
func (s *scope) notes() string {
	return s.warnings(apply.ReasonNotWatched) + s.warnings(apply.ReasonStray) + s.contested() + hold.Note(s.gs.Status.Held)
}

// attemptedRevision returns the revision that was attempted of what the spec names; empty as long as
// that could not be read, and the folder before is maintained: the revision of one folder must never
// be taken for that of another.
func (s *scope) attemptedRevision() string {
	if wanted := s.wanted(); s.session.desired.source.path != wanted.path || s.session.desired.source.ignore != wanted.ignore {
		return ""
	}
	return s.session.desired.source.revision.String()
}

// firstError returns why the GitSync is not ready; causes that hide others come first.
func (s *scope) firstError(problems []manifest.Problem) error {
	if err := s.looked.Err; err != nil {
		// The next look is either due at a known time or under way, so no back-off is needed.
		return reconcile.Waiting(reconcile.ReasonOf(err), s.requeueAfter(), "%w%s", err, s.neglected())
	}
	if len(problems) > 0 {
		reason := reasonOf(problems)
		if len(s.session.desired.problems) > 0 {
			reason = v1alpha1.InvalidManifestReason
		}
		return reconcile.Waiting(reason, s.requeueAfter(), "%s%s", s.summarize(problems), s.warnings(apply.ReasonPruneHeld))
	}
	for _, t := range s.targets() {
		switch {
		case t.paused(): // reported where nothing is wrong elsewhere
		case t.state.Lost != nil:
			return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, s.requeueAfter(), "%w", t.state.Lost) // it names the cluster
		case t.state.Result.Err != nil:
			return reconcile.Waiting(v1alpha1.ApplyFailedReason, s.requeueAfter(), "%s%w", t.prefix(), t.state.Result.Err)
		}
	}
	return nil
}

// neglected says, to be appended to a message, that what was delivered is not corrected for lack of
// its objects.
func (s *scope) neglected() string {
	if len(s.session.record.known()) == 0 || !s.lacksObjects() {
		return ""
	}
	return "; drift correction is paused until then"
}

// reasonOf returns the reason for the problems of a cluster: ApplyFailed if any is about an object
// that is wanted, and PruneFailed if all are about objects to be removed.
func reasonOf(problems []manifest.Problem) string {
	if slices.ContainsFunc(problems, func(p manifest.Problem) bool { return !p.Removal }) {
		return v1alpha1.ApplyFailedReason
	}
	return v1alpha1.PruneFailedReason
}

// problems returns those of the manifests and of every cluster, in a stable order.
func (s *scope) problems() []manifest.Problem {
	all := slices.Clone(s.session.desired.problems)
	for _, t := range s.targets() {
		all = append(all, t.problems()...)
	}
	return all
}

// problems returns those of one cluster, with its name; none if the cluster cannot be used: git may
// have changed long since its last problems.
func (t *target) problems() []manifest.Problem {
	if t.state.Lost != nil {
		return nil
	}
	all := slices.Clone(t.state.Result.Problems)
	for i := range all {
		all[i].Cluster = t.name
	}
	return all
}

// unfinished returns what the GitSync waits for; empty if it waits for nothing.
func (s *scope) unfinished() string {
	if s.lacksObjects() {
		return "waiting for the git server" + s.neglected()
	}
	for _, t := range s.targets() {
		if n := len(t.state.Result.Waiting); n > 0 {
			return fmt.Sprintf("%swaiting for %s%s%s", t.prefix(), t.state.Result.Waiting[0], excerpt.AndMore(n-1), t.lingering())
		}
		if t.leaving && !t.paused() {
			return fmt.Sprintf("%sdeleting what was delivered, %s left", t.prefix(), excerpt.Count(len(t.state.Result.Inventory), "object"))
		}
	}
	return ""
}

// lingering says, to be appended to a message, what the first Namespace that is waited for waits for itself.
func (t *target) lingering() string {
	for _, id := range t.state.Result.Waiting {
		if why := t.state.Result.Lingering[id]; why != "" {
			return fmt.Sprintf("; %s: %s", id, why)
		}
	}
	return ""
}

// health returns the health of all objects in all clusters.
func (s *scope) health() health.Summary {
	var all health.Summary
	for _, t := range s.targets() {
		if !t.state.Usable() {
			continue
		}
		if seen, ok := t.delivery.Observe(); ok {
			all.Add(seen.Health)
		}
	}
	return all
}

// sickness is the time since which objects of a digest are not healthy; zero if all are.
type sickness struct {
	since  time.Time
	digest string
}

// lasts returns for how long objects of a digest have not been healthy.
func (x *sickness) lasts(digest string) time.Duration {
	if x.since.IsZero() || x.digest != digest {
		*x = sickness{since: time.Now(), digest: digest}
	}
	return time.Since(x.since)
}

// reportSick returns the outcome while objects are not healthy: progress within spec.timeout, a
// failure after it. Their watches enqueue the GitSync.
func (s *scope) reportSick(outcome reconcile.Outcome, sick health.Summary) (reconcile.Outcome, error) {
	left := s.gs.GetTimeout() - s.session.sick.lasts(s.session.desired.digest)
	if left <= 0 || sick.Failed() {
		return outcome, reconcile.Waiting(v1alpha1.NotHealthyReason, s.requeueAfter(), "%s", sick)
	}
	outcome.Unknown, outcome.Message = v1alpha1.ProgressingReason, sick.String()
	if outcome.RequeueAfter == 0 || left < outcome.RequeueAfter {
		outcome.RequeueAfter = left
	}
	return outcome, nil
}

// settlesWithin is how long objects may take to become healthy before that is written to the
// status: most are healthy at once, which saves a write.
const settlesWithin = 2 * time.Second

// settling returns for how long it need not be written that objects are not healthy yet; zero if
// the status has other changes.
func (s *scope) settling(before *v1alpha1.GitSyncStatus) time.Duration {
	if s.session.sick.since.IsZero() {
		return 0
	}
	after := s.gs.Status.DeepCopy()
	after.AttemptedRevision = before.AttemptedRevision
	if !equality.Semantic.DeepEqual(before, after) {
		return 0
	}
	return settlesWithin - time.Since(s.session.sick.since)
}

// clusterStatuses returns the status of each cluster; nil for a GitSync that delivers to its own
// cluster only.
func (s *scope) clusterStatuses() []v1alpha1.GitSyncClusterStatus {
	var list []v1alpha1.GitSyncClusterStatus
	targets := s.targets()
	if len(targets) == 1 && targets[0].name == "" {
		return nil
	}
	for _, t := range targets {
		c := v1alpha1.GitSyncClusterStatus{Name: t.name, Revision: t.achieved.revision, AppliedDigest: t.achieved.applied, Leaving: t.leaving}
		switch {
		case t.paused():
			c.Ready, c.Reason, c.Message = s.isCurrent(t), v1alpha1.SuspendedReason, t.state.Lost.Error()
		case t.state.Lost != nil:
			c.Reason, c.Message = v1alpha1.ClusterUnreachableReason, t.state.Lost.Error()
		case t.state.Result.Err != nil:
			c.Reason, c.Message = v1alpha1.ApplyFailedReason, t.state.Result.Err.Error()
		case len(t.state.Result.Problems) > 0:
			c.Reason, c.Message = reasonOf(t.state.Result.Problems), summarize(t.state.Result.Problems, 0, s.session.desired.count)
		case t.state.Digest == "" || t.state.Digest != s.session.desired.digest || len(t.state.Result.Waiting) > 0:
			c.Reason = v1alpha1.ProgressingReason
		default:
			c.Ready = true
		}
		list = append(list, c)
	}
	return list
}

func (s *scope) message() string {
	message := fmt.Sprintf("applied %s: %s", s.session.desired.source.revision, excerpt.Count(s.session.desired.count, "object"))
	switch {
	case s.gs.Spec.ClusterSelector == nil:
		return message
	case len(s.session.targets) == 0:
		return fmt.Sprintf("%s is applied nowhere: no KubernetesCluster of this namespace matches spec.clusterSelector", s.session.desired.source.revision)
	default:
		return message + " in " + excerpt.Count(len(s.session.targets), "cluster")
	}
}

// warnings returns those of one reason, of every cluster, in a stable order, to be appended to a
// message.
func (s *scope) warnings(reason string) string {
	var all []manifest.Problem
	for _, t := range s.targets() {
		for _, w := range t.state.Result.Warnings {
			if w.Cluster = t.name; w.Reason == reason {
				all = append(all, w)
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	text := "; " + all[0].Error()
	if len(all) == 1 {
		return text
	}
	var others []string
	for _, w := range all[1:] {
		others = append(others, w.Subject())
	}
	return fmt.Sprintf("%s (and %d more: %s)", text, len(others), excerpt.Names(others, namedWarnings))
}

// namedWarnings is how many more objects a message names of which it says the same.
const namedWarnings = 10

// contested says, to be appended to a message, which objects another field manager keeps changing.
func (s *scope) contested() string {
	var all []string
	for _, t := range s.targets() {
		for _, name := range t.state.Contested {
			all = append(all, t.prefix()+name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s%s: another field manager keeps changing or deleting it; corrections back off: "+
		"metadata.managedFields names the manager of a changed field; have only one of the two manage it", all[0], excerpt.AndMore(len(all)-1))
}
