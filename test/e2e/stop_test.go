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
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// A process that is terminated in the middle of an install lets it come to its end, hook and
// all, and nothing is left for the next one to recover (P9, K3).
func TestSync_endsWhatItHasBegun(t *testing.T) {
	s := newSetting(t, env.Options{Name: "stop", Pods: true})
	s.lead(nil)
	// On a busy machine the Pod of the hook may take longer than the default allows.
	process := s.start("--shutdown-grace=1m")
	inst := s.stopInTheMiddle(process)

	records := s.records()
	require.Len(t, records, 1)
	assert.Equal(t, "deployed", records[0].Labels["status"])
	require.NotNil(t, inst.Status.Release, "what was made is noted before the process ends")
	assert.NotEmpty(t, inst.Status.Release.RecordDigest)

	s.start()
	hub.AwaitReady(s.World, inst)
	assert.EqualValues(t, 1, inst.Status.Release.Revision, "nothing is installed anew")
}

// What does not come to its end within the grace period is cancelled, and says so in the user
// cluster before it is left: the next process knows what was begun (P9, K3).
func TestSync_recordsWhatItBreaksOff(t *testing.T) {
	s := newSetting(t, env.Options{Name: "broken-off", NoControllers: true}) // no hook ever ends
	s.Create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeconfig", Namespace: hub.SystemNamespace},
		Data:       map[string][]byte{"kubeconfig": s.Cluster.Kubeconfig()},
	})
	s.lead(&v1alpha1.SecretKeyReference{Name: "kubeconfig"})
	inst := s.stopInTheMiddle(s.start("--shutdown-grace=1s"))

	records := s.records()
	require.Len(t, records, 1)
	assert.Equal(t, "failed", records[0].Labels["status"])
	require.NotNil(t, inst.Status.Release, "what was made is noted before the process ends")
	assert.Equal(t, "failed", inst.Status.Release.Status)
	assert.NotEmpty(t, inst.Status.Release.RecordDigest)
}

// stopInTheMiddle creates an installation, terminates the process as soon as the install has begun,
// and returns the installation as the process left it.
func (s *setting) stopInTheMiddle(process *env.Process) *v1alpha1.ApplicationInstallation {
	s.T.Helper()
	inst := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.1.0"}},
	}
	s.Create(inst)
	require.True(s.T, s.Eventually(func() bool { return len(s.records()) > 0 }), "the install never begins")
	ctx, cancel := context.WithTimeout(s.T.Context(), hub.Limit)
	defer cancel()
	require.NoError(s.T, process.Stop(ctx))
	require.NoError(s.T, process.Err(), "it ends in good order")
	require.True(s.T, s.Exists(inst, inst.Name))
	return inst
}

// records are the Secrets in which Helm keeps the revisions of releases.
func (s *setting) records() []corev1.Secret {
	s.T.Helper()
	list := &corev1.SecretList{}
	require.NoError(s.T, s.Client.List(s.T.Context(), list, client.InNamespace(s.Namespace), client.MatchingLabels{"owner": "helm"}))
	return list.Items
}
