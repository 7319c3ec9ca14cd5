package release

import (
	"context"
	"errors"
	"fmt"
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

// store is the storage of one release for one action: the Secrets of Helm's own driver, and a history that was observed
// already. Helm lists the whole history, contents included, up to four times in one upgrade; of most revisions it wants no
// more than what their labels say.
type store struct {
	secrets corev1.SecretInterface
	id      Identity

	mu        sync.Mutex
	revisions []Revision
	contents  map[int]*helmrelease.Release
	// failed is the first error of a write, which Helm may only log.
	failed error
}

func newStore(config *rest.Config, id Identity, observed Observed) (*store, error) {
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &store{
		secrets:   client.Secrets(id.Namespace),
		id:        id,
		revisions: slices.Clone(observed.Revisions),
		contents:  map[int]*helmrelease.Release{},
	}, nil
}

// storage returns the store in the form that Helm wants.
func (s *store) storage() *storage.Storage { return storage.Init(s) }

// key is what Helm calls the Secret of a revision.
func (s *store) key(revision int) string {
	return fmt.Sprintf("%s.%s.v%d", storage.HelmStorageType, s.id.Name, revision)
}

// Name implements Helm's driver.Driver.
func (s *store) Name() string { return driver.SecretsDriverName }

// Get implements Helm's driver.Driver: contents are read once.
func (s *store) Get(key string) (*helmrelease.Release, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(key)
}

func (s *store) get(key string) (*helmrelease.Release, error) {
	for number, known := range s.contents {
		if s.key(number) == key {
			return known, nil
		}
	}
	secret, err := s.secrets.Get(context.Background(), key, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, driver.ErrReleaseNotFound
	}
	if err != nil {
		return nil, err
	}
	found, err := decode(secret)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", key, err)
	}
	s.contents[found.Version] = found
	return found, nil
}

// Query implements Helm's driver.Driver. Asked for a status it returns releases with their contents; asked for a history,
// the newest has its contents and the others nothing but their number and status.
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

// errList: no action lists what is not of its release.
var errList = errors.New("storage of one release cannot list others")

// List implements Helm's driver.Driver.
func (s *store) List(func(*helmrelease.Release) bool) ([]*helmrelease.Release, error) {
	return nil, errList
}

// Create implements Helm's driver.Driver. A revision that exists already is the work of somebody who was faster.
func (s *store) Create(key string, r *helmrelease.Release) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	secret, err := encode(key, r, labelCreated, s.id)
	if err == nil {
		_, err = s.secrets.Create(context.Background(), secret, metav1.CreateOptions{FieldManager: v1alpha1.HelmFieldManager})
	}
	if apierrors.IsAlreadyExists(err) {
		err = driver.ErrReleaseExists
	}
	if err != nil {
		return s.note(err)
	}
	s.revisions = append(s.revisions, Revision{Number: r.Version, Status: r.Info.Status})
	s.contents[r.Version] = r
	return nil
}

// Update implements Helm's driver.Driver.
func (s *store) Update(key string, r *helmrelease.Release) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Chart == nil && r.Manifest == "" {
		return s.note(fmt.Errorf("refuse to overwrite %s with an outline of it", key))
	}
	secret, err := encode(key, r, labelModified, s.id)
	if err == nil {
		_, err = s.secrets.Update(context.Background(), secret, metav1.UpdateOptions{FieldManager: v1alpha1.HelmFieldManager})
	}
	if err != nil {
		return s.note(err)
	}
	for i := range s.revisions {
		if s.revisions[i].Number == r.Version {
			s.revisions[i].Status = r.Info.Status
		}
	}
	return nil
}

// Delete implements Helm's driver.Driver, without reading first what is to be deleted. What is gone already is no error.
func (s *store) Delete(key string) (*helmrelease.Release, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.secrets.Delete(context.Background(), key, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, s.note(err)
	}
	s.revisions = slices.DeleteFunc(s.revisions, func(r Revision) bool { return s.key(r.Number) == key })
	return nil, nil
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

// newest returns the number of the newest revision, also of one that was made in this session.
func (s *store) newest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := 0
	for _, r := range s.revisions {
		newest = max(newest, r.Number)
	}
	return newest
}
