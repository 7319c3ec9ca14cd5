package gitsync_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// installationOf is a manifest of an installation whose values have that many bytes, which no
// rule limits but the API server's own.
func installationOf(name string, size int) string {
	return fmt.Sprintf("apiVersion: apps.waybill.dev/v1alpha1\nkind: ApplicationInstallation\nmetadata: {name: %s}\nspec:\n  applicationRef: {name: web, version: 1.0.0}\n  values: {text: %q}\n",
		name, strings.Repeat("x", size))
}

// P12: an object that is larger than an API server stores is named with its file and why; the
// others are applied, and one that just fits is like any other.
func TestGitSync_hugeObjectsHoldUpNoOthers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		manifest string
		says     string
	}{
		"ConfigMap":    {"a limit of the kind", configMap("huge", strings.Repeat("x", 1200<<10)), "may not be more than 1048576 bytes"},
		"storage":      {"a limit of etcd", installationOf("huge", 1600<<10), "too large to be stored"},
		"transport":    {"a limit of the connection to etcd", installationOf("huge", 2200<<10), "too large to be stored"},
		"request body": {"a limit of the API server", installationOf("huge", 3200<<10), "limit is 3145728"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.commit(map[string]string{
				"a/huge.yaml": tc.manifest,
				"large.yaml":  configMap("large", strings.Repeat("y", 1000<<10)),
				"small.yaml":  configMap("small", "z"),
			})
			gs := w.sync(nil)
			message := hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason)
			assert.Contains(t, message, "a/huge.yaml:1", tc.reason)
			assert.Contains(t, message, "/huge: ", tc.reason)
			assert.Contains(t, message, tc.says, tc.reason)
			assert.Less(t, len(message), 1000, "what is too large is not repeated")
			require.Len(t, gs.Status.Problems, 1)
			assert.Equal(t, "Invalid", gs.Status.Problems[0].Reason, "nothing but another commit helps")
			assert.True(t, w.Exists(&corev1.ConfigMap{}, "large"))
			assert.True(t, w.Exists(&corev1.ConfigMap{}, "small"))

			w.remove("a/huge.yaml")
			hub.AwaitReady(w.World, hub.Reconcile(w.World, gs))
		})
	}
}
