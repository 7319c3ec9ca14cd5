package release

import (
	"fmt"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// RecordName returns the name of the Secret in which Helm keeps a revision.
func (i Identity) RecordName(revision int) string { return i.record(revision) }

// Recorded returns the values that a revision was installed with, and the manifests of its objects, from Helm's
// record of it, as RecordedValues does.
func Recorded(secret *corev1.Secret, revision int, known *v1alpha1.ReleaseStatus) (values map[string]any, manifests string, err error) {
	found, err := recordAt(secret, revision, known)
	if err != nil {
		return nil, "", err
	}
	return found.Config, found.Manifest, nil
}

// RecordedValues returns the values that a revision was installed with, from Helm's record of it. known
// is the release as its installation's status has it: a record that differs from what Waybill stored is
// not used, since others may have written it.
func RecordedValues(secret *corev1.Secret, revision int, known *v1alpha1.ReleaseStatus) (map[string]any, error) {
	found, err := recordAt(secret, revision, known)
	if err != nil {
		return nil, err
	}
	return found.Config, nil
}

func recordAt(secret *corev1.Secret, revision int, known *v1alpha1.ReleaseStatus) (*helmrelease.Release, error) {
	id := Identity{Known: known}
	stored := ""
	if known != nil {
		id.Namespace, id.Name = known.Namespace, known.Name
		if int(known.Revision) == revision {
			stored = known.StoredDigest
		} else if noted := id.noted(revision); noted != nil {
			stored = noted.StoredDigest
		}
	}
	if stored == "" {
		return nil, fmt.Errorf("the record of revision %d of release %s is not one that Waybill has noted", revision, id)
	}
	if stored != storedDigest(secret) {
		return nil, id.altered(revision)
	}
	found, err := decode(secret, own)
	if err != nil {
		return nil, fmt.Errorf("the record of revision %d of release %s cannot be read: %w", revision, id, err)
	}
	return found, nil
}
