package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// A process that is told to end in the middle of an install lets it come to its end, hook and
// all, and nothing is left for the next one to recover (P9, K3).
func TestSync_endsWhatItHasBegun(t *testing.T) {
	s := newSetting(t)
	// On a busy machine the Pod of the hook may take longer than the default allows.
	process := s.start("--shutdown-grace=1m")
	inst := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.1.0"}},
	}
	s.Create(inst)
	require.True(t, s.Eventually(func() bool { return len(s.records()) > 0 }), "the install never begins")
	ctx, cancel := context.WithTimeout(t.Context(), hub.Limit)
	defer cancel()
	require.NoError(t, process.Stop(ctx))
	require.NoError(t, process.Err(), "it ends in good order")
	require.True(t, s.Exists(inst, inst.Name))

	records := s.records()
	require.Len(t, records, 1)
	assert.Equal(t, "deployed", records[0].Labels["status"])
	require.NotNil(t, inst.Status.Release, "what was made is noted before the process ends")
	assert.NotEmpty(t, inst.Status.Release.RecordDigest)

	s.start()
	hub.AwaitReady(s.World, inst)
	assert.EqualValues(t, 1, inst.Status.Release.Revision, "nothing is installed anew")
}

// records are the Secrets in which Helm keeps the revisions of releases.
func (s *setting) records() []corev1.Secret {
	s.T.Helper()
	list := &corev1.SecretList{}
	require.NoError(s.T, s.Client.List(s.T.Context(), list, client.InNamespace(s.Namespace), client.MatchingLabels{"owner": "helm"}))
	return list.Items
}
