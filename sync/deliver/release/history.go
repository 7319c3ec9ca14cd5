package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// recorded is what the record of a revision says that the release consists of.
type recorded struct {
	revision int
	objects  kube.ResourceList
	// vouched says that the record is as it was noted. If it is not, it may name any object.
	vouched bool
}

// had returns the objects of a revision. For an altered record, hooks are left out, because they
// carry no mark of ours; so is everything if the record cannot be read.
func (s *session) had(revision int) (recorded, error) {
	found, err := s.store.Get(s.store.key(revision))
	if err != nil {
		return recorded{}, err
	}
	if !s.store.isAltered(revision) {
		list, err := s.build(found)
		return recorded{revision: revision, objects: list, vouched: true}, err
	}
	claimed, err := s.store.claimed(revision)
	var list kube.ResourceList
	if err == nil {
		list, err = s.client.build(strings.NewReader(claimed), "manifest", false)
	}
	if err != nil {
		s.client.warn(fmt.Sprintf("skipped the objects of revision %d, whose record cannot be read: %s", revision, err))
		return recorded{revision: revision}, nil
	}
	return recorded{revision: revision, objects: slices.DeleteFunc(list, isHook)}, nil
}

// readLeftovers reads the revisions that failed since the last one that did not: these may have
// created objects and set fields that no later revision knows of. It includes altered revisions,
// because Helm sees nothing of them. What the next revision does not want of this is removed.
func (s *session) readLeftovers() error {
	s.client.leftovers = nil
	for _, r := range slices.Backward(s.observed.Revisions) {
		if _, err := s.store.Get(s.store.key(r.Number)); err != nil {
			return err
		}
		if r.Status != helmrelease.StatusFailed && !s.store.isAltered(r.Number) {
			break
		}
		had, err := s.had(r.Number)
		if err != nil {
			return err
		}
		s.client.leftovers = append(s.client.leftovers, had)
		if len(s.client.leftovers) == maxLeftovers {
			break // others wrote most of them
		}
	}
	return nil
}

// settle deletes what the leftovers have and made has not. If that fails, made is recorded as failed,
// though Helm has installed it: else the next action would not look for leftovers before it, nor
// would an uninstall.
func (s *session) settle(made *helmrelease.Release) error {
	err := s.prune(made)
	if err == nil {
		return nil
	}
	made.SetStatus(helmrelease.StatusFailed, "What earlier revisions left could not be removed: "+err.Error())
	return cmp.Or(s.store.Update(s.store.key(made.Version), made), err)
}

// prune deletes the objects of the leftovers that made does not contain.
func (s *session) prune(made *helmrelease.Release) error {
	if len(s.client.leftovers) == 0 {
		return nil
	}
	wanted, err := s.build(made)
	if err != nil {
		return err
	}
	for _, had := range s.client.leftovers {
		if err := s.client.removeAll(reversed(had.objects.Difference(wanted)), had.vouched); err != nil {
			return err
		}
	}
	return nil
}
