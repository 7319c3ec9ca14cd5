package hub

import (
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AwaitPodRefused waits until the API server refuses Pods in the test's namespace in these words. A
// new quota or label is in force only when a controller and the API server's own caches know of it:
// until then Pods are admitted.
func (w *World) AwaitPodRefused(words string) {
	w.T.Helper()
	var err error
	refused := w.Eventually(func() bool {
		probe := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "probe"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
		}
		err = w.Client.Create(w.T.Context(), probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), words)
	})
	require.True(w.T, refused, "Pods are not refused with %q: %v", words, err)
}
