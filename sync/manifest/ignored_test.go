package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/manifest"
)

func TestIgnored(t *testing.T) {
	plain, wave, hook := configMap("v1", "a", "plain", "a.yaml", 1), configMap("v1", "a", "wave", "b.yaml", 1), configMap("v1", "a", "hook", "b.yaml", 7)
	plain.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "a:/ConfigMap:a/plain"})
	wave.SetAnnotations(map[string]string{"argocd.argoproj.io/sync-wave": "-1"})
	hook.SetAnnotations(map[string]string{"argocd.argoproj.io/sync-wave": "1", "argocd.argoproj.io/hook": "PreSync", "other": "x"})

	warnings := manifest.Ignored([]manifest.Object{plain, wave, hook})

	require.Len(t, warnings, 2, "what only tells whose the object is does nothing to it")
	assert.EqualError(t, warnings[0], "b.yaml:1: ConfigMap a/wave: annotation argocd.argoproj.io/sync-wave ignored: "+
		"the object is applied with all others, and neither hooks nor waves are run")
	assert.Contains(t, warnings[1].Message, "annotations argocd.argoproj.io/hook, argocd.argoproj.io/sync-wave ignored: ")
	assert.Equal(t, manifest.ReasonAnnotationIgnored, warnings[1].Reason)
}
