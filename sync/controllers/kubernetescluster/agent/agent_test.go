package agent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/kubernetescluster/agent"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/chart"
)

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func newInstaller(t *testing.T, image, version string) *agent.Installer {
	t.Helper()
	charts, err := chart.NewCache(t.TempDir())
	require.NoError(t, err)
	i, err := agent.New(t.Context(), agent.Options{HubID: "hub", SystemNamespace: "waybill-system", Charts: charts, Image: image, Version: version})
	require.NoError(t, err)
	return i
}

func spec(values string) *v1alpha1.ClusterAgent {
	if values == "" {
		return &v1alpha1.ClusterAgent{}
	}
	return &v1alpha1.ClusterAgent{Values: &apiextensionsv1.JSON{Raw: []byte(values)}}
}

// Version and image are the hub's, unless the values name another image.
func TestWant_versionAndImage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, image, version, values string
		wantVersion, wantImage         string
	}{
		"tag":           {"that of the hub", "registry:5000/a/waybill:1.2.3", "v1.2.3", "", "1.2.3", "registry:5000/a/waybill:1.2.3"},
		"digest":        {"outranks the tag", "a/waybill:1@" + digest, "v1.2.3", "", "1.2.3", "a/waybill@" + digest},
		"no tag":        {"that of the chart, which is the version of the hub", "a/waybill", "v1.2.3", "", "1.2.3", "a/waybill:1.2.3"},
		"own image":     {"what the values say counts", "a/waybill:1.2.3", "v1.2.3", `{"image":{"tag":"1.2.4"}}`, "1.2.3", "a/waybill:1.2.4"},
		"no version":    {"a build without one has the chart as it is in the repository", "a/waybill:dev", "unknown", "", "0.1.0", "a/waybill:dev"},
		"short version": {"which is none for a chart", "a/waybill:dev", "4be1a2c", "", "0.1.0", "a/waybill:dev"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newInstaller(t, tc.image, tc.version).Want(spec(tc.values))
			require.NoError(t, err, tc.reason)
			assert.Equal(t, tc.wantVersion, got.Version, tc.reason)
			assert.Equal(t, tc.wantImage, got.Image, tc.reason)
		})
	}
}

// What identifies the release changes with all that goes into it, and with nothing else.
func TestDigest(t *testing.T) {
	of := func(image, version, values string) string {
		i := newInstaller(t, image, version)
		w, err := i.Want(spec(values))
		require.NoError(t, err)
		d, err := i.Digest("uid", w)
		require.NoError(t, err)
		return d
	}
	same := of("a/waybill:1", "v1.0.0", "")
	assert.Equal(t, same, of("a/waybill:1", "1.0.0", `{"roles":{"hub":true,"driver":"yes"}}`), "what drives clusters cannot be switched on")
	assert.NotEqual(t, same, of("a/waybill:2", "v1.0.0", ""), "another image")
	assert.NotEqual(t, same, of("a/waybill:1", "v1.0.1", ""), "another version")
	assert.NotEqual(t, same, of("a/waybill:1", "v1.0.0", `{"roles":{"data":true}}`), "other values")
}

func TestWant_refusesWhatAreNoValues(t *testing.T) {
	for reason, values := range map[string]string{"a list": `[1]`, "no JSON": `{`} {
		_, err := newInstaller(t, "", "").Want(spec(values))
		assert.Equal(t, v1alpha1.InvalidValuesReason, reconcile.ReasonOf(err), reason)
	}
}

func TestCheckImage(t *testing.T) {
	for _, image := range []string{"", "waybill:1", "a.example:5000/b/waybill", "a/waybill@" + digest} {
		assert.NoError(t, agent.CheckImage(image), image)
	}
	for _, image := range []string{":1", "a b", "a/waybill:no tag", "a/waybill@sha256:1", "https://a/waybill:1", "A/B:1"} {
		assert.Error(t, agent.CheckImage(image), image)
	}
}
