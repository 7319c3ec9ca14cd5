package release

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
)

// store is the storage of one release for one action: the Secrets of Helm's own driver, and a
// history that was observed already. Helm lists the whole history, contents included, up to four
// times in one upgrade; of most revisions it needs no more than what their labels say. The store
// also recognises records that others have altered: of those, Helm sees only that there is such a
// revision.
type store struct {
	ctx     context.Context // of the action: once it has ended, no further revision begins
	secrets corev1.SecretInterface
	id      Identity

	mu        sync.Mutex
	revisions []Revision
	contents  map[int]*helmrelease.Release
	// seals are the digests of the records that may be executed: the known ones, and those created
	// in this session. storedAs are the digests of their bytes, and versions the resourceVersions at which
	// they were last read or written.
	seals, storedAs, versions map[int]string
	// altered are the records that may not be executed, because they differ from what was noted or
	// nothing was.
	altered map[int]*foreign
	// notedFrom is the revision from which on every record should have been noted.
	notedFrom int
	// makeRoom is called with each release before it is recorded.
	makeRoom func(*helmrelease.Release)
	// failed is the first error of a write, which Helm may only log.
	failed error
}

// newStore returns a store for the action of that context. How it ended is recorded for settleTime
// after its end.
func newStore(ctx, settled context.Context, config *rest.Config, id Identity, observed Observed) (*store, error) {
	client, err := corev1.NewForConfig(bound(settled, config))
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	newest, _ := observed.newest()
	notedFrom := 0
	if id.Known != nil {
		notedFrom = min(newest.Number, int(id.Known.Revision))
	}
	return &store{
		ctx:       ctx,
		secrets:   client.Secrets(id.Namespace),
		id:        id,
		revisions: slices.Clone(observed.Revisions),
		contents:  map[int]*helmrelease.Release{},
		seals:     sealsOf(id.Known),
		storedAs:  storedDigestsOf(id.Known),
		versions:  map[int]string{},
		altered:   map[int]*foreign{},
		notedFrom: notedFrom,
	}, nil
}

// storage returns the store in the form that Helm needs.
func (s *store) storage() *storage.Storage { return storage.Init(s) }

// key returns the name of the Secret of a revision.
func (s *store) key(revision int) string { return s.id.record(revision) }

// Name implements Helm's driver.Driver.
func (s *store) Name() string { return driver.SecretsDriverName }

// Get implements Helm's driver.Driver. Contents are read once.
func (s *store) Get(key string) (*helmrelease.Release, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(key)
}

func (s *store) get(key string) (*helmrelease.Release, error) {
	i := slices.IndexFunc(s.revisions, func(r Revision) bool { return s.key(r.Number) == key })
	if i < 0 {
		return nil, driver.ErrReleaseNotFound
	}
	r := s.revisions[i]
	if known := s.contents[r.Number]; known != nil {
		return known, nil
	}
	secret, err := s.secrets.Get(context.Background(), key, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, driver.ErrReleaseNotFound
	}
	if err != nil {
		return nil, err
	}
	found := s.open(r.Number, secret)
	if found == nil {
		found = s.outline(r)
	}
	found.Info.Status = r.Status // as observed and decided on
	s.contents[r.Number] = found
	return found, nil
}

// Query implements Helm's driver.Driver. Queried by status, it returns releases with their
// contents; queried for a history, it returns contents for the newest, and only number and status
// for the others.
func (s *store) Query(labels map[string]string) ([]*helmrelease.Release, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, byStatus := labels[labelStatus]
	var found []*helmrelease.Release
	for i, r := range s.revisions {
		switch {
		case byStatus && string(r.Status) != status:
		case byStatus || i == len(s.revisions)-1:
			full, err := s.get(s.key(r.Number))
			if err != nil {
				return nil, err
			}
			found = append(found, full)
		default:
			found = append(found, s.outline(r))
		}
	}
	if len(found) == 0 {
		return nil, driver.ErrReleaseNotFound
	}
	return found, nil
}

func (s *store) outline(r Revision) *helmrelease.Release {
	return &helmrelease.Release{
		Name:      s.id.Name,
		Namespace: s.id.Namespace,
		Version:   r.Number,
		Info:      &helmrelease.Info{Status: r.Status},
	}
}

// errList is what List returns: no action lists other releases.
var errList = errors.New("storage of one release cannot list others")

// List implements Helm's driver.Driver.
func (s *store) List(func(*helmrelease.Release) bool) ([]*helmrelease.Release, error) {
	return nil, errList
}

// Create implements Helm's driver.Driver. If the revision already exists, another client was faster. If
// the action has ended, so may the release have by now: another may have found nothing to uninstall.
func (s *store) Create(key string, r *helmrelease.Release) error {
	s.makeRoom(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if inputOf(r.Version, r.Labels[inputLabel]) == "" {
		r.Labels = s.id.rollbackLabels(r.Version, r.Labels)
	}
	secret, err := encode(key, r, labelCreated, s.id)
	if err == nil {
		err = context.Cause(s.ctx)
	}
	if err == nil {
		secret, err = s.secrets.Create(context.Background(), secret, metav1.CreateOptions{FieldManager: v1alpha1.HelmFieldManager})
	}
	if apierrors.IsAlreadyExists(err) {
		err = driver.ErrReleaseExists
	}
	if err != nil {
		return s.note(err)
	}
	s.revisions = append(s.revisions, Revision{Number: r.Version, Status: r.Info.Status, uid: secret.UID})
	s.contents[r.Version], s.seals[r.Version], s.storedAs[r.Version] = r, seal(r), storedDigest(secret)
	s.versions[r.Version] = secret.ResourceVersion
	return nil
}

// Update implements Helm's driver.Driver. A record that makeRoom has deleted is not written again. A
// revision that failed stays failed: Helm records it as superseded when a rollback from it fails, or
// when another replaces it, and then it would pass for one to go back to.
func (s *store) Update(key string, r *helmrelease.Release) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.revisions, func(known Revision) bool { return known.Number == r.Version })
	if i < 0 {
		return nil
	}
	if s.revisions[i].Status == helmrelease.StatusFailed && r.Info.Status == helmrelease.StatusSuperseded {
		r.Info.Status = helmrelease.StatusFailed
	}
	was := s.altered[r.Version]
	if was != nil {
		// Keep what others wrote for inspection, as a revision that Waybill does not go by.
		r = was.with(r.Info, s.outline(s.revisions[i]))
	} else if r.Chart == nil && r.Manifest == "" {
		return s.note(fmt.Errorf("refuse to overwrite %s with an outline of it", key))
	}
	secret, err := encode(key, r, labelModified, s.id)
	if err == nil {
		secret.UID = s.revisions[i].uid
		secret, err = s.secrets.Update(context.Background(), secret, metav1.UpdateOptions{FieldManager: v1alpha1.HelmFieldManager})
	}
	if err != nil {
		return s.note(err)
	}
	s.revisions[i].Status = r.Info.Status
	if was == nil {
		s.storedAs[r.Version], s.versions[r.Version] = storedDigest(secret), secret.ResourceVersion
	}
	return nil
}

// Delete implements Helm's driver.Driver, without reading the record first. A record that is
// already gone is no error, even if another took its name.
func (s *store) Delete(key string) (*helmrelease.Release, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil, s.note(s.remove(key))
}

// drop deletes the record of a revision as Delete does; that it failed is up to the caller.
func (s *store) drop(revision int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(s.key(revision))
}

func (s *store) remove(key string) error {
	i := slices.IndexFunc(s.revisions, func(r Revision) bool { return s.key(r.Number) == key })
	if i < 0 {
		return nil
	}
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.revisions[i].uid))}
	err := s.secrets.Delete(context.Background(), key, options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	s.revisions = slices.Delete(s.revisions, i, i+1)
	return nil
}

func (s *store) note(err error) error {
	if err != nil && s.failed == nil {
		s.failed = fmt.Errorf("record release %s: %w", s.id, err)
	}
	return err
}

// failure returns the first error of a write.
func (s *store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// numbers returns the revisions, oldest first, including those created in this session.
func (s *store) numbers() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make([]int, 0, len(s.revisions))
	for _, r := range s.revisions {
		found = append(found, r.Number)
	}
	return found
}

// inUse returns the revisions that must stay: the one that is deployed, the last good one, and the
// one that a rollback would return to. Mostly that is one.
func (s *store) inUse() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var deployed, good int
	for _, r := range s.revisions {
		if r.good() {
			good = max(good, r.Number)
		}
		if r.Status == helmrelease.StatusDeployed {
			deployed = max(deployed, r.Number)
		}
	}
	found := []int{deployed, good}
	if to := s.goodBefore(math.MaxInt); to != nil {
		found = append(found, int(to.Revision))
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(revision int) bool { return revision == 0 })
}

// goodBefore returns the last revision before the given one that a rollback may return to: it was
// installed completely, and its record is vouched for.
func (s *store) goodBefore(revision int) *v1alpha1.ReleaseRecord {
	for _, r := range slices.Backward(s.revisions) {
		if r.Number < revision && r.good() && s.seals[r.Number] != "" && s.altered[r.Number] == nil {
			return &v1alpha1.ReleaseRecord{Revision: int32(r.Number), RecordDigest: s.seals[r.Number], StoredDigest: s.storedAs[r.Number]}
		}
	}
	return nil
}

// holds reports whether r is the release in a record that was read or written in this session.
func (s *store) holds(r *helmrelease.Release) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contents[r.Version] == r
}

// newest returns the number of the newest revision, including those created in this session.
func (s *store) newest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := 0
	for _, r := range s.revisions {
		newest = max(newest, r.Number)
	}
	return newest
}
