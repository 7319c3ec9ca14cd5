package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// stateful returns a StatefulApplication of the Application of the same name.
func stateful(namespace, name string) *v1alpha1.StatefulApplication {
	return &v1alpha1.StatefulApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.StatefulApplicationSpec{ApplicationName: name},
	}
}

// taken returns a snapshot of a StatefulApplication.
func taken(namespace, name, of string) *v1alpha1.ApplicationSnapshot {
	return &v1alpha1.ApplicationSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ApplicationSnapshotSpec{
			SnapshotClassName: "cold",
			Source:            v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: of},
		},
	}
}

// says plays the controller of an object: it writes the status that change leaves.
func says[T client.Object](t *testing.T, c client.Client, object T, change func(T)) {
	t.Helper()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return c.Status().Update(t.Context(), object)
	}))
}

var durations = regexp.MustCompile(`\b[0-9.]+m?s\b`)

// timeless returns a text with a word in place of each duration, and single blanks before it.
func timeless(text string) string {
	return regexp.MustCompile(` +TIME`).ReplaceAllString(durations.ReplaceAllString(text, "TIME"), " TIME")
}

// ends waits until the program has ended, and returns its exit code.
func (r *running) ends(t *testing.T) int {
	t.Helper()
	select {
	case code := <-r.done:
		return code
	case <-t.Context().Done():
		t.Fatal("the program does not end", r.out.String(), r.errOut.String())
		return 0
	}
}
