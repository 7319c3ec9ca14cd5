package applicationinstallation

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
)

// maxRecordMessage is how much of why an attempt failed the history keeps, in bytes: the conditions have
// the rest for as long as it lasts.
const maxRecordMessage = 256

// attempt is what an action is for, as the history has it.
type attempt struct {
	kind   kind
	method v1alpha1.Method
	// record is what is installed, without an outcome.
	record v1alpha1.InstallationRecord
	// before is the release as it was known when the action began; nil if there was none.
	before *v1alpha1.ReleaseStatus
	// to is the revision that a rollback is to return to; 0 if that is not known.
	to int32
}

// attempted returns what an action that begins now is for.
func (s *scope) attempted(how kind) attempt {
	app := s.current()
	t := attempt{kind: how, method: app.Method, before: s.session.deployed.known(), record: v1alpha1.InstallationRecord{
		Version: app.Version, SourceRevision: app.Revision, ValuesDigest: s.inst.ValuesDigest(), SecretValues: s.inst.HasSecretValues(),
	}}
	switch {
	case how == goBack && s.session.holding.hold != nil:
		t.to = int32(s.session.holding.hold.Revision)
	case how == rollBack && t.before != nil && t.before.Fallback != nil:
		t.to = t.before.Fallback.Revision
	}
	return t
}

// recorded returns the history after the attempt has ended: the same if it changed nothing, as when what
// is installed was found as it should be. known is the release as it is known by then.
func (t attempt) recorded(history []v1alpha1.InstallationRecord, got acted, known *v1alpha1.ReleaseStatus) []v1alpha1.InstallationRecord {
	switch {
	case t.method == v1alpha1.MethodKustomize:
		return t.applied(history, got)
	case t.kind == install && got.failure != nil:
		return t.failed(history, got)
	case t.kind == install && isDeployed(known):
		return t.deployed(history, known)
	case t.kind == rollBack && got.rollback != nil:
		return t.gaveUp(history, got.failure)
	case t.kind == rollBack && got.release != nil && !got.spared:
		return t.returned(t.gaveUp(history, got.failure), got.release)
	case t.kind == goBack && got.returned && got.notReturned == "":
		return t.returned(history, got.release)
	}
	return history
}

func isDeployed(r *v1alpha1.ReleaseStatus) bool { return r != nil && r.Status == "deployed" }

// deployed adds that a revision is deployed, unless the history says so.
func (t attempt) deployed(history []v1alpha1.InstallationRecord, known *v1alpha1.ReleaseStatus) []v1alpha1.InstallationRecord {
	if newest := newestOf(history); newest.Revision == known.Revision && newest.Outcome != v1alpha1.InstallationFailed {
		return history
	}
	return t.add(history, known.Revision, v1alpha1.InstallationDeployed, nil)
}

// failed adds that an install failed and, if it was undone, what it was rolled back to.
func (t attempt) failed(history []v1alpha1.InstallationRecord, got acted) []v1alpha1.InstallationRecord {
	if got.release == nil || got.release.Name == "" {
		return t.add(history, 0, v1alpha1.InstallationFailed, got.failure)
	}
	made := got.release.Revision
	if undone := isDeployed(got.release) && t.before != nil && made > t.before.Revision+1; !undone {
		return t.add(history, made, v1alpha1.InstallationFailed, got.failure)
	}
	return t.returned(t.add(history, made-1, v1alpha1.InstallationFailed, got.failure), got.release)
}

// gaveUp has the entry of what a rollback gives up say that it failed.
func (t attempt) gaveUp(history []v1alpha1.InstallationRecord, why error) []v1alpha1.InstallationRecord {
	history = slices.Clone(history)
	for i := range history {
		if r := &history[i]; t.before != nil && r.Revision == t.before.Revision && r.Outcome == v1alpha1.InstallationDeployed {
			r.Outcome, r.Message = v1alpha1.InstallationFailed, messageOf(why)
			break
		}
	}
	return history
}

// returned adds that an earlier revision was written again; nothing if there is no newer revision.
func (t attempt) returned(history []v1alpha1.InstallationRecord, release *v1alpha1.ReleaseStatus) []v1alpha1.InstallationRecord {
	if !isDeployed(release) || release.Revision == newestOf(history).Revision {
		return history
	}
	back := attempt{}
	for _, r := range history {
		if t.to > 0 && r.Revision == t.to || t.to == 0 && r.Outcome != v1alpha1.InstallationFailed {
			back.record = r
			break
		}
	}
	return back.add(history, release.Revision, v1alpha1.InstallationRolledBack, nil)
}

// applied is recorded for method kustomize, which has no releases: a correction may bring to an end what
// failed at first.
func (t attempt) applied(history []v1alpha1.InstallationRecord, got acted) []v1alpha1.InstallationRecord {
	newest := newestOf(history)
	same := newest.Version == t.record.Version && newest.SourceRevision == t.record.SourceRevision
	why := got.failure
	if why == nil {
		why = got.wrong()
	}
	switch {
	case t.kind == uninstall:
		return history
	case t.kind == rollBack && !got.spared && same && newest.Outcome == v1alpha1.InstallationDeployed:
		t.before = &v1alpha1.ReleaseStatus{Revision: newest.Revision}
		return t.gaveUp(history, why)
	case t.kind == install && why != nil && !(same && newest.Outcome == v1alpha1.InstallationDeployed):
		return t.add(history, next(history, same), v1alpha1.InstallationFailed, why)
	case t.kind != rollBack && why == nil && !(same && newest.Outcome == v1alpha1.InstallationDeployed):
		return t.add(history, next(history, false), v1alpha1.InstallationDeployed, nil)
	}
	return history
}

// next returns the number of an entry for method kustomize; again if it replaces the newest one.
func next(history []v1alpha1.InstallationRecord, again bool) int32 {
	if newest := newestOf(history); again && newest.Outcome == v1alpha1.InstallationFailed {
		return newest.Revision
	}
	return newestOf(history).Revision + 1
}

// add puts an entry first. What failed again replaces the entry of the attempt before.
func (t attempt) add(history []v1alpha1.InstallationRecord, revision int32, outcome v1alpha1.InstallationOutcome, why error) []v1alpha1.InstallationRecord {
	made := t.record
	made.Revision, made.Outcome, made.Message = revision, outcome, messageOf(why)
	made.FinishedAt = metav1.NewTime(time.Now()).Rfc3339Copy()
	newest := newestOf(history)
	again := outcome == v1alpha1.InstallationFailed && newest.Outcome == outcome &&
		newest.Version == made.Version && newest.SourceRevision == made.SourceRevision && newest.ValuesDigest == made.ValuesDigest
	if again {
		history = history[1:]
	}
	history = slices.Concat([]v1alpha1.InstallationRecord{made}, history)
	return history[:min(len(history), v1alpha1.MaxInstallationHistory)]
}

func messageOf(why error) string {
	if why == nil {
		return ""
	}
	return excerpt.Of(excerpt.Line(why.Error()), maxRecordMessage)
}

// newestOf returns the first entry; an empty one if there is none.
func newestOf(history []v1alpha1.InstallationRecord) v1alpha1.InstallationRecord {
	if len(history) == 0 {
		return v1alpha1.InstallationRecord{}
	}
	return history[0]
}
