package release

import (
	"context"
	"fmt"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
)

// glance observes no more of a release than it takes to see that nothing has changed: the revision that
// was noted last is deployed, made of input, and ours, and there is none after it. Otherwise it returns
// false, and everything has to be observed. A list of records costs the API server as much as there
// are Secrets in the namespace; this is what each installation of it costs when a process starts.
func (e *Engine) glance(ctx context.Context, t Target, id Identity, input string) (Observed, bool) {
	if id.Known == nil || id.Known.Revision < 1 || id.Known.Digest != input {
		return Observed{}, false
	}
	record, err := newestRecord(ctx, t, id)
	if err != nil || record == nil {
		return Observed{}, false
	}
	r, ok := revisionOf(&metav1.PartialObjectMetadata{ObjectMeta: record.ObjectMeta})
	if !ok || r.Number != int(id.Known.Revision) || r.Status != helmrelease.StatusDeployed || r.Input != input || r.OwnerHash != id.OwnerHash {
		return Observed{}, false
	}
	return Observed{Revisions: []Revision{r}, At: time.Now(), record: record}, true
}

// newestRecord returns the record of the revision that was noted last; nil if there is one after it.
func newestRecord(ctx context.Context, t Target, id Identity) (*corev1.Secret, error) {
	client, err := kubernetes.NewForConfig(t.Config())
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	partial, err := metadata.NewForConfig(t.Config())
	if err != nil {
		return nil, fmt.Errorf("make metadata client: %w", err)
	}
	record, err := client.CoreV1().Secrets(id.Namespace).Get(ctx, id.record(int(id.Known.Revision)), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	// An action that was broken off leaves a pending revision, beside the one that is deployed.
	_, err = partial.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(id.Namespace).
		Get(ctx, id.record(int(id.Known.Revision)+1), metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	return record, nil
}

// Seen is what was read of a release that is as desired.
type Seen struct {
	observed Observed
	current  *helmrelease.Release
}

// seen returns what the session has read of a release.
func (s *session) seen(current *helmrelease.Release) *Seen {
	found := &Seen{observed: s.observed, current: current}
	found.observed.record = nil // it is in current
	return found
}
