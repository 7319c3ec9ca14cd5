package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"waybill.dev/waybill/api/v1alpha1"
)

// maxEarlier is how many earlier records are noted.
const maxEarlier = 20

// Return is where a release goes back to.
type Return struct {
	Revision int
	// GivenUp is why the newest revision, if that is the known one, did not work: it is recorded as failed. Empty if
	// nothing was wrong with it.
	GivenUp string
}

// ReturnTo makes a release what it was at a revision, as `helm rollback` does, because its objects and
// their data were put back to that. No hook runs: those of the chart expect the data of another
// revision. If the revision is the newest one, nothing is done. The next Ensure installs again what is
// wanted: its caller decides when. ReasonNoRevision says that there is no record of the revision, and
// ReasonAltered that it differs from what was noted, or that none was.
func (e *Engine) ReturnTo(ctx context.Context, t Target, id Identity, o Options, to Return) (Result, error) {
	revision := to.Revision
	observed, err := e.observeOurs(ctx, t, id)
	if err != nil {
		return Result{}, err
	}
	at := slices.IndexFunc(observed.Revisions, func(r Revision) bool { return r.Number == revision })
	if at < 0 {
		return Result{}, &Error{Reason: ReasonNoRevision, Err: fmt.Errorf("release %s has no revision %d in its history any more", id, revision)}
	}
	o.DisableHooks = true
	j := job{engine: e, target: t, desired: Desired{Identity: id, Options: o}, observed: observed}
	if newest, _ := observed.newest(); newest.Number == revision && newest.good() {
		return inSession(ctx, j, func(ctx context.Context, s *session) (Result, error) { return keep(ctx, s, Decision{}) })
	}
	noted := id.noted(revision)
	if noted == nil || !observed.Revisions[at].good() {
		return Result{}, id.altered(revision)
	}
	known := id.Known.DeepCopy()
	known.Earlier = append(known.Earlier, *cmp.Or(known.Fallback, noted))
	known.Fallback = noted
	j.desired.Known = known
	newest, _ := observed.newest()
	failed := to.GivenUp != "" && newest.Status == helmrelease.StatusDeployed && newest.Number == int(known.Revision)
	return inSession(ctx, j, func(_ context.Context, s *session) (Result, error) {
		if failed {
			if err := s.giveUp(to.GivenUp); err != nil {
				return Result{}, s.failed("roll back", err)
			}
		}
		return s.goBack(s.fallback())
	})
}

// noted returns what is known of the record of an earlier revision; nil if nothing is.
func (i Identity) noted(revision int) *v1alpha1.ReleaseRecord {
	if i.Known == nil {
		return nil
	}
	all := i.Known.Earlier
	if i.Known.Fallback != nil {
		all = append(slices.Clone(all), *i.Known.Fallback)
	}
	n := slices.IndexFunc(all, func(r v1alpha1.ReleaseRecord) bool { return int(r.Revision) == revision })
	if n < 0 {
		return nil
	}
	return all[n].DeepCopy()
}

// earlier returns the records that are known beside those that a status names already, and that are
// still there. The caller holds the lock.
func (s *store) earlier(status v1alpha1.ReleaseStatus) []v1alpha1.ReleaseRecord {
	if s.id.Known == nil {
		return nil
	}
	known := slices.Clone(s.id.Known.Earlier)
	if s.id.Known.Fallback != nil {
		known = append(known, *s.id.Known.Fallback)
	}
	if s.id.Known.RecordDigest != "" {
		known = append(known, v1alpha1.ReleaseRecord{Revision: s.id.Known.Revision, RecordDigest: s.id.Known.RecordDigest, StoredDigest: s.storedAs[int(s.id.Known.Revision)]})
	}
	seen := map[int32]bool{status.Revision: true}
	if status.Fallback != nil {
		seen[status.Fallback.Revision] = true
	}
	var found []v1alpha1.ReleaseRecord
	for _, r := range slices.Backward(known) {
		is := func(x Revision) bool { return x.Number == int(r.Revision) && x.good() }
		if !seen[r.Revision] && slices.ContainsFunc(s.revisions, is) && s.altered[int(r.Revision)] == nil && len(found) < maxEarlier {
			seen[r.Revision] = true
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b v1alpha1.ReleaseRecord) int { return cmp.Compare(a.Revision, b.Revision) })
	return found
}
