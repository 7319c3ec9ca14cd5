package release

import (
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
)

// makeRoom deletes old records, so that there are not more than the history limit when next is
// recorded. Revisions in use stay, and so do the objects that they contain: next may yet fail before
// it has changed anything. What only one failed revision contains is deleted before its record,
// because nothing else names it; records that take nothing with them go first.
//
// This is no part of the action: what cannot be deleted is a warning, and its record stays.
func (s *session) makeRoom(next *helmrelease.Release) {
	old := s.store.numbers()
	over := len(old) + 1 - s.desired.Options.historyLimit()
	if over <= 0 {
		return
	}
	inUse := s.store.inUse()
	old = slices.DeleteFunc(old, func(revision int) bool { return slices.Contains(inUse, revision) })
	needed, err := s.needed(next, old, inUse)
	if err != nil {
		s.client.warn("kept all revisions beyond the history limit: " + err.Error())
		return
	}
	for _, withObjects := range []bool{false, true} {
		for _, revision := range old {
			had := s.alone(revision, needed)
			switch {
			case over == 0:
				return
			case !slices.Contains(s.store.numbers(), revision), len(had.objects) > 0 != withObjects:
				continue
			}
			if err := s.discard(had); err != nil {
				s.client.warn(fmt.Sprintf("kept revision %d beyond the history limit: %s", revision, err))
				continue
			}
			over--
		}
	}
}

// needed returns the objects of next and of the revisions in use. It reads nothing if no leftover is
// among the old revisions: then they take nothing with them.
func (s *session) needed(next *helmrelease.Release, old, inUse []int) (kube.ResourceList, error) {
	if !slices.ContainsFunc(s.client.leftovers, func(had recorded) bool { return slices.Contains(old, had.revision) }) {
		return nil, nil
	}
	found, err := s.build(next)
	if err != nil {
		return nil, err
	}
	for _, revision := range inUse {
		had, err := s.had(revision)
		if err != nil {
			return nil, fmt.Errorf("read revision %d: %w", revision, err)
		}
		found = append(found, had.objects...)
	}
	return found, nil
}

// alone returns what an old revision contains, and neither needed nor any other leftover does whose
// record is there.
func (s *session) alone(revision int, needed kube.ResourceList) recorded {
	i := slices.IndexFunc(s.client.leftovers, func(had recorded) bool { return had.revision == revision })
	if i < 0 {
		return recorded{revision: revision}
	}
	had := s.client.leftovers[i]
	had.objects = had.objects.Difference(needed)
	present := s.store.numbers()
	for _, other := range s.client.leftovers {
		if other.revision != revision && other.vouched && slices.Contains(present, other.revision) {
			had.objects = had.objects.Difference(other.objects)
		}
	}
	return had
}

// discard deletes objects of an old revision, and then its record.
func (s *session) discard(had recorded) error {
	err := s.client.batches(reversed(had.objects), func(info *resource.Info) error {
		return s.client.remove(info, metav1.DeletePropagationBackground, had.vouched)
	})
	if err != nil {
		return err
	}
	return s.store.drop(had.revision)
}
