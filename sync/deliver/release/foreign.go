package release

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
)

// theirs bounds a record whose bytes Waybill has not noted: any user who may write Secrets in the
// namespace may have made it. No sane chart reaches this.
var theirs = unpacked{bytes: 16 << 20, values: 100_000}

const (
	// maxClaimed and maxClaimedValues bound the manifest of such a record, as text and, as estimated,
	// in values.
	maxClaimed       = 4 << 20
	maxClaimedValues = 100_000

	// maxForeign bounds what one action keeps of such records, in bytes.
	maxForeign = 16 << 20

	// maxLeftovers bounds how many revisions one action looks back to.
	maxLeftovers = 100
)

// decodingTheirs is held while a record that Waybill has not noted is decoded: one at a time in the
// whole process, however many actions come upon one.
var decodingTheirs sync.Mutex

// foreign is a record that may not be executed, as far as it can be read.
type foreign struct {
	// secret holds the record as it was read; nil if it was too much to keep.
	secret *corev1.Secret
	labels map[string]string
	// seal is the digest of what it would execute.
	seal string
	// manifest is what it claims that the release consists of.
	manifest string
	// unusable is why the manifest is not known; nil if it is.
	unusable error
}

func decodeTheirs(secret *corev1.Secret) (*helmrelease.Release, error) {
	decodingTheirs.Lock()
	defer decodingTheirs.Unlock()
	return decode(secret, theirs)
}

// open returns the release in a record that is as it was noted. Any other is remembered as altered,
// and open returns nil. The bytes are compared first: a record that Waybill stored just so is decoded as
// it is. Any other is decoded within narrow bounds, because Helm itself changes records, as `helm test`
// does: if it would execute the same, it is as noted. The caller holds the lock.
func (s *store) open(revision int, secret *corev1.Secret) *helmrelease.Release {
	digest := storedDigest(secret)
	if digest == s.storedAs[revision] {
		if found, err := decode(secret, own); err == nil {
			s.versions[revision] = secret.ResourceVersion
			return found
		}
	}
	found, err := decodeTheirs(secret)
	if want := s.seals[revision]; err == nil && want != "" && want == seal(found) {
		s.storedAs[revision], s.versions[revision] = digest, secret.ResourceVersion
		return found
	}
	s.altered[revision] = s.keep(secret, found, err)
	return nil
}

// keep returns what is kept of a record that may not be executed.
func (s *store) keep(secret *corev1.Secret, found *helmrelease.Release, err error) *foreign {
	f := &foreign{labels: ownLabels(secret), unusable: err}
	if err != nil {
		return f
	}
	f.seal = seal(found)
	if f.unusable = checkClaim(found.Manifest); f.unusable == nil {
		f.manifest = found.Manifest
	}
	kept := len(secret.Data[recordKey]) + len(f.manifest)
	for _, other := range s.altered {
		if other.secret != nil {
			kept += len(other.secret.Data[recordKey]) + len(other.manifest)
		}
	}
	if kept > maxForeign {
		return &foreign{labels: f.labels, unusable: errors.New("too many revisions of the release differ from what Waybill recorded")}
	}
	f.secret = secret
	return f
}

// checkClaim checks that a manifest that others wrote can be parsed at little cost.
func checkClaim(manifest string) error {
	if len(manifest) > maxClaimed {
		return fmt.Errorf("its manifest has more than %d bytes", maxClaimed)
	}
	values := strings.Count(manifest, "- ")
	for _, begins := range []string{"\n", ",", ":", "[", "{"} {
		values += strings.Count(manifest, begins)
	}
	if values > maxClaimedValues {
		return fmt.Errorf("its manifest has more than %d values", maxClaimedValues)
	}
	var tooLarge *expansion.TooLargeError
	if err := expansion.Text([]byte(manifest), expansion.Limits{}); errors.As(err, &tooLarge) {
		return fmt.Errorf("its manifest: %w", err)
	}
	return nil
}

// with returns the release in the record with another status; what cannot be read is replaced with the
// outline.
func (f *foreign) with(info *helmrelease.Info, outline *helmrelease.Release) *helmrelease.Release {
	found := outline
	if f.secret != nil {
		if read, err := decodeTheirs(f.secret); err == nil {
			read.Name, read.Namespace, read.Version = outline.Name, outline.Namespace, outline.Version
			found = read
		}
	}
	found.Labels = f.labels
	found.SetStatus(info.Status, info.Description)
	return found
}

// vouch accepts the record of a revision, which was not vouched for, as one of Waybill's own if it has
// that digest, and returns it; nil otherwise.
func (s *store) vouch(revision int, digest string) *helmrelease.Release {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.altered[revision]
	if f == nil || f.secret == nil || digest == "" || f.seal != digest {
		return nil
	}
	found, err := decodeTheirs(f.secret)
	if err != nil || found.Chart == nil {
		return nil
	}
	found.Info.Status = s.contents[revision].Info.Status // as observed and decided on
	delete(s.altered, revision)
	s.contents[revision], s.seals[revision], s.storedAs[revision] = found, digest, storedDigest(f.secret)
	s.versions[revision] = f.secret.ResourceVersion
	return found
}

// isAltered reports whether the record of a revision was read and may not be executed.
func (s *store) isAltered(revision int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.altered[revision] != nil
}

// claimed returns the manifest in an altered record, as it was altered; or why it is not known.
func (s *store) claimed(revision int) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.altered[revision]
	return f.manifest, f.unusable
}

// allAltered returns the revisions whose records were read and are not as Waybill wrote them. An
// older one of which nothing is noted any more is not one of them, although it is not executed
// either: only two revisions are noted, and several may have failed.
func (s *store) allAltered() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	altered := slices.Sorted(maps.Keys(s.altered))
	return slices.DeleteFunc(altered, func(revision int) bool { return revision < s.notedFrom && s.seals[revision] == "" })
}

// status describes a revision, with what is needed to recognise its record and that of the revision
// that a rollback returns to.
func (s *store) status(r *helmrelease.Release) v1alpha1.ReleaseStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := v1alpha1.ReleaseStatus{
		Name:         r.Name,
		Namespace:    r.Namespace,
		Revision:     int32(r.Version),
		Digest:       inputOf(r.Version, r.Labels[inputLabel]),
		Status:       string(r.Info.Status),
		RecordDigest: s.seals[r.Version],
		StoredDigest: s.storedAs[r.Version],

		StoredVersion: s.versions[r.Version],
	}
	if status.Digest == wentBack {
		status.Digest = ""
	}
	if r.Chart != nil && r.Chart.Metadata != nil {
		status.Chart = r.Chart.Metadata.Name + "-" + r.Chart.Metadata.Version
	}
	status.Fallback = s.goodBefore(r.Version)
	status.Earlier = s.earlier(status)
	return status
}
