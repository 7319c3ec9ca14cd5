package release

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/time"
)

func record() *helmrelease.Release {
	return &helmrelease.Release{
		Name: "web", Namespace: "shop", Version: 3, Manifest: "kind: ConfigMap\n# <&> \xff\n",
		Info:  &helmrelease.Info{Status: helmrelease.StatusPendingInstall},
		Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "web", Version: "1.0.0"}},
		Hooks: []*helmrelease.Hook{
			{Name: "migrate", Kind: "Job", Manifest: "kind: Job\n# \xff\xfe\n", Events: []helmrelease.HookEvent{helmrelease.HookPreDelete}},
			{Name: "check", Kind: "Pod", Manifest: "kind: Pod\n", Events: []helmrelease.HookEvent{helmrelease.HookTest}},
		},
	}
}

// The digest of a record is that of what may be executed: Helm changes the rest while it acts.
func TestSeal(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*helmrelease.Release)
		same   bool
	}{
		"Status":  {"it is written several times in one action", func(r *helmrelease.Release) { r.SetStatus(helmrelease.StatusDeployed, "done") }, true},
		"LastRun": {"a hook has run", func(r *helmrelease.Release) { r.Hooks[0].LastRun.StartedAt = time.Now() }, true},
		"DefaultPolicy": {"Helm fills in its default", func(r *helmrelease.Release) {
			r.Hooks[0].DeletePolicies = []helmrelease.HookDeletePolicy{helmrelease.HookBeforeHookCreation}
		}, true},
		"Order": {"helm test moves the hooks that it leaves out to the front", func(r *helmrelease.Release) {
			r.Hooks = []*helmrelease.Hook{r.Hooks[1], r.Hooks[0]}
		}, true},
		"Labels":   {"they are for finding the record", func(r *helmrelease.Release) { r.Labels = map[string]string{"a": "b"} }, true},
		"Manifest": {"it would be applied", func(r *helmrelease.Release) { r.Manifest += " " }, false},
		"Hook":     {"it would be run", func(r *helmrelease.Release) { r.Hooks[0].Manifest += " " }, false},
		"Weight":   {"it would be run before or after others", func(r *helmrelease.Release) { r.Hooks[0].Weight = 1 }, false},
		"Another":  {"it would be run", func(r *helmrelease.Release) { r.Hooks = append(r.Hooks, r.Hooks[0]) }, false},
		"Event":    {"it would be run at another time", func(r *helmrelease.Release) { r.Hooks[0].Events[0] = helmrelease.HookPreUpgrade }, false},
		"Policy": {"objects would be deleted by it", func(r *helmrelease.Release) {
			r.Hooks[0].DeletePolicies = []helmrelease.HookDeletePolicy{"hook-failed"}
		}, false},
		"NoHook":    {"damaged", func(r *helmrelease.Release) { r.Hooks[0] = nil }, false},
		"Revision":  {"one is not taken for another", func(r *helmrelease.Release) { r.Version = 2 }, false},
		"Name":      {"one is not taken for another", func(r *helmrelease.Release) { r.Name = "other" }, false},
		"Namespace": {"what is rendered says where it goes", func(r *helmrelease.Release) { r.Namespace = "other" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changed := record()
			tc.change(changed)
			assert.Equal(t, tc.same, seal(record()) == seal(changed), tc.reason)
		})
	}
}

func TestSeal_survivesBeingStored(t *testing.T) {
	secret, err := encode("key", record(), labelCreated, Identity{})
	require.NoError(t, err)
	found, err := decode(secret, theirs)
	require.NoError(t, err)
	assert.Equal(t, seal(record()), seal(found))
}
